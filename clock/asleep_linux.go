package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clocks of clock_gettime(2): the second one continues while the machine is suspended.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// Asleep returns for how long the machine has been suspended since it was booted, which Now does not count. The
// result may be too large if the process is stopped while it reads the clocks.
func (system) Asleep() time.Duration {
	var asleep time.Duration
	for range 3 {
		before, boot, after := read(clockMonotonic), read(clockBoottime), read(clockMonotonic)
		if asleep = boot - before; after-before < time.Millisecond {
			break
		}
	}
	return max(0, asleep)
}

func read(clock uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
