package servers

import (
	"fmt"
	"os"
	"slices"
)

// With runs a function with servers for several tests, such as all tests of a package. They end when it returns the program's
// exit status.
func With(run func(TB) int) int {
	t := &whole{}
	defer t.end()
	return run(t)
}

// A whole is a TB for several tests.
type whole struct{ cleanups []func() }

func (*whole) Helper() {}

func (t *whole) Fatalf(format string, args ...any) {
	t.end()
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func (t *whole) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *whole) TempDir() string {
	dir, err := os.MkdirTemp("", "weir-test-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (t *whole) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}
