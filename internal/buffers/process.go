package buffers

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// none is the budget in bytes for a process without a memory limit.
const none = 256 << 20

// Bodies is the budget of this process for bodies: a quarter of its memory. Tables is the budget for data derived from them
// while they are read: an eighth.
var (
	limit  = memory()
	Bodies = newBudget(part(4))
	Tables = &Budget{total: part(8), share: part(8)}
)

// Window returns the bytes of one response that an HTTP/2 connection holds for a caller that does not read it: 1/1024 of the
// process's memory, between 64 KiB and 1 MiB.
func Window() int { return int(max(64<<10, min(part(1024), 1<<20))) }

// RequestWindow returns the bytes of unread request bodies that one HTTP/2 connection to weir holds. All connections
// together hold an eighth of the memory, but each at least 64 KiB, the minimum of the protocol, and at most 1 MiB.
func RequestWindow(connections int) int {
	return int(max(64<<10, min(part(8)/int64(max(1, connections)), 1<<20)))
}

// Unread returns the bytes that all unread responses should hold together: an eighth of the memory.
func Unread() int64 { return part(8) }

// ConnectionWindow returns the bytes of all responses that one HTTP/2 connection holds: a quarter of the memory.
func ConnectionWindow() int { return int(max(16<<20, min(part(4), 1<<30))) }

func part(of int64) int64 {
	if limit == math.MaxInt64 {
		return none * 4 / of
	}
	return limit / of
}

// memory returns the memory that this process may use: GOMEMLIMIT or the limit of its cgroup, or the largest number without
// either.
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

// Heed sets the garbage collector's limit to three quarters of the memory limit, also that of the cgroup. The rest is for
// memory outside of the heap, such as the program itself.
func Heed() {
	if limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}
