package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
	"github.com/seed1158cd35/weir/limit"
)

// childFile is the environment variable that makes this test binary use a file until it is killed.
const childFile = "WEIR_TEST_FILESTORE"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		child(path)
	}
	watchdog.Run(m)
}

const childGoroutines = 6

// modes are additional tasks for a child, by name.
var modes = map[string]func(s *filestore.Store, path string){}

// child takes, returns and swaps in several goroutines, and prints each answer.
func child(path string) {
	wait, _ := time.ParseDuration(os.Getenv("WAIT"))
	s, err := filestore.Open(path, filestore.Options{NoSync: os.Getenv("NOSYNC") != "", Wait: wait})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	if f := modes[os.Getenv("MODE")]; f != nil {
		f(s, path)
	}
	var wg sync.WaitGroup
	for i := range childGoroutines {
		wg.Go(func() { childTakes(s, uint64(i)) })
	}
	wg.Go(func() { childSwaps(s) })
	wg.Wait()
	os.Exit(1)
}

// childTakes takes one to five units at a time, and returns some of them.
func childTakes(s *filestore.Store, lane uint64) {
	for {
		n := 1 + rand.Int64N(5)
		a := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: lane, Copies: n, Claims: []fleet.Claim{claim(time.Now(), slow, 1), claim(time.Now(), quota, 1)}}
		if err := s.Take(context.Background(), a); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("took", a.Granted)
		if rand.IntN(4) > 0 {
			continue
		}
		back := &fleet.Ask{Group: "g", ID: rand.Uint64() | 1, Lane: lane}
		for i, k := range a.Claims {
			back.Settle = append(back.Settle, fleet.Settlement{Rule: k.Rule, Key: k.Key, Windows: k.Windows, Back: 1, Mark: a.Grants[i].Mark})
		}
		fmt.Println("returning 1") // printed first: the return may or may not be executed
		if err := s.Take(context.Background(), back); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
}

func childSwaps(s *filestore.Store) {
	ctx := context.Background()
	all, _, err := s.Load(ctx, "g", []string{"count"})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for r := all[0]; ; {
		n, _ := strconv.Atoi(string(r.Value))
		r.Value, r.Keep = strconv.AppendInt(nil, int64(n+1), 10), time.Hour
		var ok bool
		if r, ok, err = s.Swap(ctx, "g", r); err != nil || !ok {
			fmt.Println("error", ok, err)
			os.Exit(1)
		}
		fmt.Println("counted", n+1)
	}
}

// quota is a limit whose window does not end during a test.
var quota = &fleet.Rule{Name: "quota", Shape: limit.Calendar, Amount: 1_000_000}

// told is the output of a child before it was killed.
type told struct {
	took, returning, counted int64
	err                      string
}

func (o *told) hears(line string) {
	word, rest, _ := strings.Cut(line, " ")
	n, _ := strconv.ParseInt(rest, 10, 64)
	switch word {
	case "took":
		o.took += n
	case "returning":
		o.returning += n
	case "counted":
		o.counted = n
	case "error":
		o.err = rest
	}
}

// run starts a child and calls then after the given number of output lines, immediately if the number is negative.
// It returns all output of the child.
func run(t *testing.T, path string, lines int, then func(p *os.Process), env ...string) (o told) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), childFile+"="+path), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if lines < 0 {
		then(c.Process)
	}
	in := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			break // ignore a truncated line
		}
		if o.hears(strings.TrimSuffix(line, "\n")); n == lines && then != nil {
			then(c.Process)
		}
	}
	_ = c.Wait()
	return o
}

// killed returns a function that kills a process after a while.
func killed(after time.Duration) func(p *os.Process) {
	return func(p *os.Process) { time.AfterFunc(after, func() { _ = p.Kill() }) }
}

// All answered operations are in the file after a kill. Besides them, only operations in progress may be.
func TestNothingIsLostByKill9(t *testing.T) {
	path := file(t)
	s := open(t, path, quick)
	all := told{took: 1000} // so that the bucket is never nearly empty, when fewer units could return
	take(t, s, all.took, claim(time.Now(), slow, 1), claim(time.Now(), quota, 1))
	closed(t, s)
	const kills = 60
	for i := range kills {
		env := "NOSYNC=1"
		if i%5 == 0 {
			env = "NOSYNC="
		}
		lines, after := rand.IntN(60), rand.N(3*time.Millisecond)
		if i%3 == 0 {
			lines, after = -1, rand.N(20*time.Millisecond) // possibly while it opens the file
		}
		o := run(t, path, lines, killed(after), env)
		if o.err != "" {
			t.Fatalf("kill %d: %s", i, o.err)
		}
		all.took += o.took
		all.returning += o.returning
		all.counted = max(all.counted, o.counted)
		s := open(t, path, quick)
		gone, counted := left(t, s, slow), records(t, s)
		quotaGone := 1_000_000 - left(t, s, quota)
		closed(t, s)
		gone = 1_000_000 - gone
		if gone < all.took-all.returning {
			t.Fatalf("kill %d: the file counts %d, but %d were granted and %d at most came back", i, gone, all.took, all.returning)
		}
		if most := all.took + int64(i+1)*childGoroutines*5; gone > most || quotaGone != gone {
			t.Fatalf("kill %d: the file counts %d and %d, %d were granted and at most %d were on their way", i, gone, quotaGone, all.took, most-all.took)
		}
		if counted < all.counted || counted > all.counted+1 {
			t.Fatalf("kill %d: the record counts %d, the child had counted to %d", i, counted, all.counted)
		}
		all.counted = counted
	}
	t.Logf("%d units, %d swaps, %d kills", all.took, all.counted, kills)
	if all.took == 0 || all.counted == 0 {
		t.Error("nothing was tried")
	}
}

func records(t *testing.T, s *filestore.Store) int64 {
	t.Helper()
	all, _, err := s.Load(context.Background(), "g", []string{"count"})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.ParseInt(string(all[0].Value), 10, 64)
	return n
}

// A second process gets ErrHeld, and the file after the first is killed.
func TestOneProcessHoldsTheFile(t *testing.T) {
	path := file(t)
	s := open(t, path, quick)
	if o := run(t, path, 0, nil, "WAIT=30ms"); !strings.Contains(o.err, path) || !strings.Contains(o.err, "Redis") {
		t.Errorf("the other process said %q", o.err)
	}
	closed(t, s)
	run(t, path, 3, func(p *os.Process) {
		if _, err := filestore.Open(path, quick); !errors.Is(err, filestore.ErrHeld) {
			t.Errorf("while another process writes: %v, want ErrHeld", err)
		}
		_ = p.Kill()
	}, "NOSYNC=1")
	open(t, path, quick)
}
