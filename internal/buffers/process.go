package buffers

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// none is the budget of a process without a limit of memory.
const none = 256 << 20

// Bodies is the budget of this process for what it holds of bodies: a quarter of its memory. Tables is that for
// what is made of them while they are read, an eighth.
var (
	limit  = memory()
	Bodies = newBudget(part(4))
	Tables = &Budget{total: part(8), share: part(8)}
)

// Window is how much of one answer a connection of HTTP/2 holds for a caller that does not read it: a 1024th part of the
// process's memory, between 64 KiB and 1 MiB.
func Window() int { return int(max(64<<10, min(part(1024), 1<<20))) }

// Unread is how much all of them should hold together, an eighth of the memory.
func Unread() int64 { return part(8) }

// ConnectionWindow is how much of all answers one connection of HTTP/2 holds, a quarter of the memory.
func ConnectionWindow() int { return int(max(16<<20, min(part(4), 1<<30))) }

func part(of int64) int64 {
	if limit == math.MaxInt64 {
		return none * 4 / of
	}
	return limit / of
}

// memory is the memory that this process may use: GOMEMLIMIT, or that of its cgroup; the
// largest number if there is none.
func memory() int64 {
	most := debug.SetMemoryLimit(-1)
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < 1<<50 {
			most = min(most, n)
		}
	}
	return most
}

// Heed has the garbage collector heed the limit, that of the cgroup, too. A quarter is left for what is
// not on the heap: the program itself among others.
func Heed() {
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}
