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

constexpr int kMostThreads = 1024;  // TBB takes memory for each; results do not depend on their number

// As many threads as asked for (0: all).
class Threads {
  public:
    explicit Threads(int threads) : arena_(threads > 0 ? std::min(threads, kMostThreads) : tbb::task_arena::automatic) {
        // Lets TBB start more threads than there are cores, if asked to.
        if (threads > 0) limit_.emplace(tbb::global_control::max_allowed_parallelism, std::min(threads, kMostThreads));
    }
    template <typename Work>
    void execute(Work&& work) {
        arena_.execute([&] { work(); });
    }

  private:
    std::optional<tbb::global_control> limit_;
    tbb::task_arena arena_;
};

// Runs `work` on `threads` threads (0: all).
template <typename Work>
void on_threads(int threads, Work&& work) {
    Threads(threads).execute(work);
}

// Calls `work(chunk, begin, end)` for every piece of [0, n) of `size` entries.
template <typename Work>
void for_pieces(std::size_t n, std::size_t size, Work&& work) {
    tbb::parallel_for(std::size_t{0}, (n + size - 1) / size,
                      [&](std::size_t chunk) { work(chunk, chunk * size, std::min(n, (chunk + 1) * size)); });
}

}  // namespace hedgerow
