package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// onlyWithQueue rejects IDs, and flags that do not apply to --queue.
func onlyWithQueue(c *cobra.Command, ids []string, with ...string) (err error) {
	c.Flags().Visit(func(other *pflag.Flag) {
		if other.Name != "queue" && !slices.Contains(with, other.Name) && err == nil {
			err = usagef("--queue applies to all messages of a queue: leave out --%s", other.Name)
		}
	})
	if len(ids) > 0 && err == nil {
		err = usagef("--queue applies to all messages of a queue: leave out the IDs")
	}
	return err
}

// messages prints the number of messages in the dead letter queue of a queue.
func (w world) messages(ctx context.Context, queue string, asJSON bool) error {
	m, err := serve.Moves(ctx, queue)
	if err != nil {
		return err
	}
	last, any, err := m.Latest(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		view := struct {
			Queue    string      `json:"queue"`
			Messages int64       `json:"messages"`
			Last     *inbox.Move `json:"last_move,omitempty"`
		}{m.DeadURL, m.Messages, nil}
		if any {
			view.Last = &last
		}
		return json.NewEncoder(w.out).Encode(view)
	}
	fmt.Fprintf(w.out, "%d messages in %s\n", m.Messages, plain(m.DeadURL))
	if any {
		fmt.Fprintf(w.out, "the last move started at %s: %s, %s %s\n", last.Started.UTC().Format(time.RFC3339), plain(last.Status), last, plain(last.Why))
	}
	return nil
}

// moveMessages moves all messages from the dead letter queue of a queue back to the queue, and prints the progress. SQS allows
// one move at a time per queue. If a move already runs, the command follows it.
func (w world) moveMessages(ctx context.Context, queue string, rate float64) error {
	if rate != 0 && (rate < 1 || rate > inbox.MostPerSecond || rate != float64(int32(rate))) {
		return usagef("--rate: SQS moves 1 to %d messages per second, in whole numbers: want a rate such as 10/s", inbox.MostPerSecond)
	}
	m, err := serve.Moves(ctx, queue)
	if err != nil {
		return err
	}
	begun, runs, err := m.Latest(ctx)
	switch {
	case err != nil:
		return err
	case runs && !begun.Ended():
		fmt.Fprintf(w.err, "a move that started at %s is still running, at its own rate: showing its progress\n", begun.Started.UTC().Format(time.RFC3339))
	case m.Messages == 0:
		fmt.Fprintf(w.out, "0 moved: there is no message in %s\n", plain(m.DeadURL))
		return nil
	default:
		if err := m.Start(ctx, int32(rate)); err != nil {
			return err
		}
	}
	if begun.Ended() {
		return w.follow(ctx, m, begun.Started)
	}
	return w.follow(ctx, m, time.Time{})
}

// The progress of a move is requested at most every soonest and at least every following. mostUnseen is the number of requests
// in which SQS may not yet report a new move.
const (
	soonest    = 50 * time.Millisecond
	following  = time.Second
	mostUnseen = 30
)

// follow prints the progress of a move that began after a time, until it ends. Stopping the command cancels the move.
func (w world) follow(ctx context.Context, m *inbox.Moves, after time.Time) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the command immediately
	ask := context.WithoutCancel(ctx)    // to print the number of moved messages
	canceled := false
	for unseen, pace := 0, soonest; unseen < mostUnseen; pace = min(2*pace, following) {
		last, _, err := m.Latest(ask)
		switch {
		case err != nil:
			return fmt.Errorf("the move continues, but its state cannot be read: %w", err)
		case !last.Started.After(after):
			unseen++
		case last.Ended():
			return w.moved(&last)
		case ctx.Err() != nil && !canceled:
			canceled, pace = true, soonest
			if err := m.Cancel(ask, last); err != nil {
				fmt.Fprintf(w.err, "the move cannot be canceled: %v\n", err)
			}
		case pace == following:
			fmt.Fprintf(w.err, "%s so far\n", last)
		}
		rest(ctx, pace)
	}
	return errors.New("SQS started the move but does not list it yet: run weir dead list --queue later")
}

// rest waits for d, or shorter if ctx ends meanwhile.
func rest(ctx context.Context, d time.Duration) {
	over := time.After(d)
	if ctx.Err() != nil {
		<-over
		return
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// moved prints the result of a move.
func (w world) moved(last *inbox.Move) error {
	fmt.Fprintf(w.out, "%s\n", last)
	switch last.Status {
	case "COMPLETED":
		return nil
	case "CANCELLED":
		fmt.Fprintln(w.out, "the move was canceled; the other messages are unchanged")
		return cli.ErrFound
	}
	return fmt.Errorf("the move ended: %s %s", plain(last.Status), plain(last.Why))
}
