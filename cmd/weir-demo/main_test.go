package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// A journal receives each write.
type journal chan string

func newJournal() journal { return make(journal, 10_000) }

func (j journal) Write(b []byte) (int, error) {
	j <- string(b)
	return len(b), nil
}

// The error of an invalid duration shows a valid one.
func TestLengthsSayWhatTheyLookLike(t *testing.T) {
	for _, args := range []string{"-live 5", "chat -act 5"} {
		var out strings.Builder
		err := run(t.Context(), world{args: strings.Fields(args), out: io.Discard, err: &out})
		if cli.Exit("weir-demo", err, io.Discard) != 2 || !strings.Contains(out.String(), `invalid value "5"`) || !strings.Contains(out.String(), "want a number with a unit, such as 30s, 5m or 1h30m") {
			t.Errorf("%s: %v, %s", args, err, out.String())
		}
	}
}
