// SPDX-License-Identifier: Apache-2.0
// Loops over chunks on a given number of threads. Chunks never depend on the number of threads, so neither do results.
#pragma once

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace hedgerow {

// Runs `work` with TBB limited to `threads` threads (0: all).
template <typename Work>
void on_threads(int threads, Work&& work) {
    std::optional<tbb::global_control> limit;  // lets TBB start more threads than there are cores, if asked to
    if (threads > 0) limit.emplace(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(threads > 0 ? threads : tbb::task_arena::automatic);
    arena.execute([&] { work(); });
}

// Calls `work(chunk, begin, end)` for every piece of [0, n) of `size` entries.
template <typename Work>
void for_pieces(std::size_t n, std::size_t size, Work&& work) {
    tbb::parallel_for(std::size_t{0}, (n + size - 1) / size,
                      [&](std::size_t chunk) { work(chunk, chunk * size, std::min(n, (chunk + 1) * size)); });
}

}  // namespace hedgerow
