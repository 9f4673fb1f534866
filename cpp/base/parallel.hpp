// SPDX-License-Identifier: Apache-2.0
// Loops over chunks on a given number of threads. Chunks never depend on the number of threads, so neither do results.
#pragma once

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>

namespace hedgerow {

constexpr int kMostThreads = 1024;  // TBB takes memory for each; results do not depend on their number

// How many threads this process may have, by HEDGEROW_THREADS in the environment; 0: as many as there are cores.
// Workers that share a machine are given theirs so. Called when the module is loaded, it limits Embree, too.
inline int threads_of_process() {
    static const int most = [] {
        const char* said = std::getenv("HEDGEROW_THREADS");
        return said ? std::clamp(std::atoi(said), 0, kMostThreads) : 0;
    }();
    static const std::optional<tbb::global_control> limit =
        most > 0 ? std::make_optional<tbb::global_control>(tbb::global_control::max_allowed_parallelism, most)
                 : std::nullopt;
    return most;
}

// As many threads as asked for (0: all that the process may have).
class Threads {
  public:
    explicit Threads(int threads) : arena_(wanted(threads)) {
        // Lets TBB start more threads than there are cores, if asked to.
        if (threads > 0) limit_.emplace(tbb::global_control::max_allowed_parallelism, std::min(threads, kMostThreads));
    }
    template <typename Work>
    void execute(Work&& work) {
        arena_.execute([&] { work(); });
    }

  private:
    static int wanted(int threads) {
        if (threads > 0) return std::min(threads, kMostThreads);
        return threads_of_process() > 0 ? threads_of_process() : tbb::task_arena::automatic;
    }

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
