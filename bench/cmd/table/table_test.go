package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two and a half repetitions, with other output of go test.
const output = `goos: linux
pkg: github.com/seed1158cd35/weir/bench
BenchmarkClock/ref/g=1-2   100  50.0 ns/op  0 B/op  0 allocs/op
BenchmarkClock/ref/g=64-2  100  25.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/ref/g=1-2   100  20.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/ref/g=64-2  100  60.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/x/time/rate/g=1-2  100  80.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/weir/g=1-2  100  20.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/weir/g=1-2  100  24.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/weir/g=1-2  100  90.0 ns/op  0 B/op  0 allocs/op
BenchmarkAllow/weir/g=64-2 100  40.0 ns/op  8 B/op  1 allocs/op
BenchmarkDeny/weir/g=64-2  100  30.0 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/failsafe/g=1 100  150 ns/op  0 B/op  0 allocs/op
BenchmarkDecision/weir/g=1 100  100 ns/op  0 B/op  0 allocs/op
BenchmarkAdmission/weir/g=64-2  1  2000000000 ns/op  0.99987 admitted/budget
PASS
`

func table(t *testing.T, in string) string {
	t.Helper()
	var out strings.Builder
	if err := run(nil, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRows(t *testing.T) {
	got := table(t, output)
	for _, want := range []string{
		"| ref | 20.0 | 60.0 | 1.0 | 1.0 | 0.8 | 1.5 | 0 | 0 | 0% |",
		"| x/time/rate | 80.0 |  | 4.0 |  | 3.3 |  | 0 | 0 | 0% |",
		"| weir | 24.0 | 40.0 | 1.2 | 0.7 | 1.0 | 1.0 | 0 | 0 | 292% |",
		"| weir | 0.9999 |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no row %q in\n%s", want, got)
		}
	}
}

func TestVerdicts(t *testing.T) {
	got := table(t, output)
	for _, want := range []string{
		"| Allow, 1 goroutine, to the reference: at most 1.25 | 1.2 | met |",
		"| Allow, 64 goroutines, to the reference: at most 0.5 | 0.6667 | MISSED |",
		"| Allow, allocations: at most 0 | 1 | MISSED |",
		"| Deny, 64 goroutines, ns where a clock read takes 25: at most 20 | 15 | met |",
		"| Decision, 1 goroutine, failsafe to weir: at least 1.5 | 1.5 | met |",
		"| Decision, 64 goroutines, failsafe to weir: at least 12 |  | no figure |",
		"| Admission, to the budget: at most 1.001 | 0.9999 | met |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no verdict %q in\n%s", want, got)
		}
	}
}

func TestBusyMachineIsSaid(t *testing.T) {
	const warning = "was not quiet"
	if got := table(t, output); strings.Contains(got, warning) {
		t.Errorf("a quiet machine was called busy:\n%s", got)
	}
	busy := strings.Replace(output, "25.0 ns/op", "45.0 ns/op", 1)
	if got := table(t, busy); !strings.Contains(got, warning) {
		t.Errorf("a busy machine was not noticed:\n%s", got)
	}
}

func TestBadInputIsAnError(t *testing.T) {
	for name, in := range map[string]string{
		"nothing measured": "PASS\n",
		"a failed run":     output + "--- FAIL: BenchmarkDo/weir/g=1-2\n",
		"a panic":          output + "panic: boom\n",
		"not a number":     "BenchmarkDo/weir/g=1-2 100 x ns/op\n",
	} {
		var out strings.Builder
		if err := run(nil, strings.NewReader(in), &out); err == nil {
			t.Errorf("%s: no error, printed\n%s", name, &out)
		}
	}
	if err := run([]string{"no such file"}, nil, &strings.Builder{}); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestARecordHasARowForEachVersion(t *testing.T) {
	file, in := filepath.Join(t.TempDir(), "core.md"), filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(in, []byte(output), 0o644); err != nil {
		t.Fatal(err)
	}
	add := func(version string) error {
		return run([]string{"-record", file, "-version", version, in}, strings.NewReader(""), io.Discard)
	}
	if err := add("v1"); err == nil {
		t.Error("a record that is not there was made, without a header")
	}
	begin := "# Record\n\n" + recordHead()
	if err := os.WriteFile(file, []byte(begin), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"v1", "v2"} {
		if err := add(v); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := os.ReadFile(file)
	row := " | 50.0 | 1.20, 0.67" + strings.Repeat(" | ", len(kept)-1) + " |\n"
	if want := begin + "| v1" + row + "| v2" + row; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
