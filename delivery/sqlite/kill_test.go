package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// childFile is the environment variable with the file of the process to kill.
const childFile = "WEIR_TEST_DELIVERIES"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFile); path != "" {
		if err := child(path, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child accepts, claims and records in a loop. It prints each step: "+" after a stored accept, ">" before a send, and
// "." after a recorded delivery.
func child(path string, to io.Writer) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 4 {
		go func() {
			for {
				d, _, err := s.Accept(ctx, post("a"))
				if err != nil {
					failed <- err
					return
				}
				fmt.Fprintf(to, "+ %s\n", d.ID)
			}
		}()
		go func() {
			for {
				if err := work(ctx, s, to); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

func work(ctx context.Context, s *sqlite.Store, to io.Writer) error {
	all, err := s.Claim(ctx, delivery.Ask{Upstream: "a", Most: 10, Lease: time.Hour})
	for _, d := range all {
		fmt.Fprintf(to, "> %s\n", d.ID)
		lost, end := s.End(ctx, delivery.End{Claim: d.Claim(), To: delivery.Completed})
		if end == nil && len(lost) > 0 {
			end = errors.New("a claim was lost")
		}
		if end != nil {
			return end
		}
		fmt.Fprintf(to, ". %s\n", d.ID)
	}
	return err
}

// Whenever the process is killed, all accepted deliveries are stored, and none is sent after its success was recorded.
func TestKilledAtAnyMoment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "d.db")
	k := &killed{T: t, accepted: make(map[string]bool), done: make(map[string]bool), sent: make(map[string]int)}
	for round := range campaign.Of(4, 30) {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childFile+"="+path)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ { // by steps rather than time, so that slow machines get as far
			if k.read(lines.Text()); n == 300+37*round {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			t.Fatalf("round %d: %s", round, &stderr)
		}
	}
	k.check(path)
}

// A killed collects the output of killed processes.
type killed struct {
	*testing.T
	accepted, done map[string]bool
	sent           map[string]int
}

func (k *killed) read(line string) {
	what, id, ok := strings.Cut(line, " ")
	if !ok || len(id) != 36 { // the last line may be incomplete
		return
	}
	switch what {
	case "+":
		k.accepted[id] = true
	case ">":
		if k.done[id] {
			k.Errorf("%s was sent after its success was recorded", id)
		}
		k.sent[id]++
	case ".":
		k.done[id] = true
	}
}

func (k *killed) check(path string) {
	s := open(k.T, path, sqlite.Options{})
	for id := range k.accepted {
		if _, err := s.Get(k.Context(), id); err != nil {
			k.Errorf("%s was accepted: %v", id, err)
		}
	}
	for id := range k.done {
		if d, err := s.Get(k.Context(), id); err != nil || d.Status != delivery.Completed {
			k.Errorf("%s was delivered, and is %s, %v", id, d.Status, err)
		}
	}
	for {
		all, err := s.Claim(k.Context(), delivery.Ask{Upstream: "a", Most: 100, Lease: time.Hour})
		if err != nil {
			k.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		for _, d := range all {
			k.read("> " + d.ID)
			if lost, err := s.End(k.Context(), delivery.End{Claim: d.Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
				k.Fatal(lost, err)
			}
		}
	}
	again := 0
	for _, n := range k.sent {
		if n > 1 {
			again++
		}
	}
	counts, err := s.Counts(k.Context())
	if err != nil {
		k.Fatal(err)
	}
	for _, c := range counts {
		if c.Status != delivery.Completed && c.Status != delivery.Failed {
			k.Errorf("%d are %s for ever", c.N, c.Status)
		}
	}
	k.Logf("%d accepted, %d sent, %d of them again as the record was lost", len(k.accepted), len(k.sent), again)
}
