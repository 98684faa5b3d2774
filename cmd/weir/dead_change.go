package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// A changing is a redrive or drop of many dead letters that is in progress.
type changing struct {
	w    world
	m    *letterSource
	do   string
	rate float64 // deliveries per second; 0 means no bound
	ends bool    // also redrive deliveries whose callers' tokens have expired
	done int
	note string
	told time.Time // of the last progress line
}

func newDeadChange(w world, do string) *cobra.Command {
	c := &cobra.Command{
		Use:   do + " [ID...]",
		Short: "Send dead letters again",
		Long: `Send dead letters again, as fast as limits permit or at --rate. Select them by ID or by flags. With --queue, move all messages of a dead letter
queue of SQS back to its queue.`,
		Example: `  weir dead redrive 01JZ4T2M8Q
  weir dead redrive --upstream hooks --rate 10/s`,
	}
	if do == "drop" {
		c.Short, c.Long = "Delete dead letters", "Delete dead letters permanently. Select them by ID or by flags."
		c.Example = "  weir dead drop --reason expired --older 720h"
	}
	p := &changing{w: w, m: w.letterFlags(c), do: do, told: time.Now()}
	choice, f := w.choiceFlags(c, p.m.running), c.Flags()
	all := f.Bool("all", false, "select all dead letters")
	most := f.Int("most", 0, "change at most `N` of the selected dead letters; 0 means all")
	f.Func("rate", "change at most `RATE`, such as 10/s, 300/m or 5000/h; the upstream's limits also apply", func(v string) (err error) {
		p.rate, err = perSecond(v)
		return err
	})
	queue := new(string)
	if do == "redrive" {
		f.BoolVar(&p.ends, "token-ended", false, "also redrive deliveries whose callers' tokens have expired, with weir's credentials")
		f.StringVar(queue, "queue", "", "move all messages in the dead letter queue of the SQS queue at `URL` back to that queue")
	}
	c.RunE = func(c *cobra.Command, ids []string) error {
		if *queue != "" {
			if err := onlyWithQueue(c, ids, "rate"); err != nil {
				return err
			}
			return w.moveMessages(c.Context(), *queue, p.rate)
		}
		if wrong := misordered(ids, choice, *all, *most); wrong != "" {
			return usagef("%s", wrong)
		}
		return p.run(c.Context(), ids, deliveries.Order{Choice: *choice, All: *all, TokenEnded: p.ends}, *most)
	}
	return c
}

// run changes dead letters by ID, or all that an order selects.
func (p *changing) run(ctx context.Context, ids []string, o deliveries.Order, most int) (err error) {
	if err := p.m.open(ctx, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.m.close()) }()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the command immediately
	if len(ids) > 0 {
		err = p.each(ctx, ids)
	} else {
		err = p.many(ctx, o, most)
	}
	return p.report(ctx, err)
}

// report prints how many were changed, also after an early end.
func (p *changing) report(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil && err != nil:
		fmt.Fprintf(p.w.out, "%d %s before the command was stopped; the others are unchanged\n", p.done, p.past())
		err = cli.ErrFound
	case err == nil && p.done == 0 && p.note == "":
		fmt.Fprintf(p.w.out, "0 %s: no dead letter matches\n", p.past())
	case err == nil || p.done > 0 || errors.Is(err, cli.ErrFound):
		fmt.Fprintf(p.w.out, "%d %s\n", p.done, p.past())
	}
	if p.note != "" {
		fmt.Fprintln(p.w.out, p.note)
	}
	return err
}

// misordered describes the error in a selection, or returns an empty string.
func misordered(ids []string, c *deliveries.Choice, all bool, most int) string {
	chosen := c.Upstream != "" || c.Reason != "" || c.Owner != "" || c.Older != ""
	switch {
	case len(ids) > 0 && (chosen || all):
		return "select dead letters by ID or by flags, not by both"
	case chosen && all:
		return "--all cannot be combined with other flags that select dead letters: leave out --all, or the other flags"
	case len(ids) == 0 && !chosen && !all:
		return "nothing is selected: give IDs, or use --upstream, --reason, --owner, --older or --all"
	case len(ids) > 0 && most != 0:
		return "--most applies to flags only: leave it out with IDs"
	case most < 0:
		return "--most must not be negative"
	}
	return ""
}

func (p *changing) past() string {
	if p.do == "drop" {
		return "dropped"
	}
	return "redriven"
}

// each changes deliveries one by one, and prints the error of each.
func (p *changing) each(ctx context.Context, ids []string) error {
	bad := 0
	for i, id := range ids {
		done, err := p.post(ctx, "/"+url.PathEscape(id)+"/"+p.do, deliveries.Order{TokenEnded: p.ends})
		switch {
		case err != nil:
			fmt.Fprintf(p.w.err, "%s: %v\n", plain(id), err)
			bad++
		default:
			p.add(done)
		}
		if i < len(ids)-1 {
			if err := p.rest(ctx, done.Changed); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return cli.ErrFound
	}
	return nil
}

// post sends an order. It waits for the response even if the command is stopped, so that the count is right.
func (p *changing) post(ctx context.Context, path string, o deliveries.Order) (deliveries.Done, error) {
	return p.m.post(context.WithoutCancel(ctx), path, o)
}

// largestStep is the maximum number of letters in one request.
const largestStep = 200

// many changes the letters that an order selects, step by step. It does not change letters that die again meanwhile: they died
// after the time in the first response.
func (p *changing) many(ctx context.Context, o deliveries.Order, most int) error {
	step := largestStep
	if p.rate > 0 { // ten steps a second, so that there are no bursts
		step = max(1, min(largestStep, int(p.rate/10)))
	}
	for {
		o.Most = step
		if most > 0 {
			o.Most = min(step, most-p.done)
		}
		done, err := p.post(ctx, "/"+p.do, o)
		if err != nil {
			return err
		}
		p.add(done)
		if done.Changed < o.Most || most > 0 && p.done >= most {
			return nil
		}
		o.Older, o.Before = "", done.Before
		if err := p.rest(ctx, done.Changed); err != nil {
			return err
		}
	}
}

// add counts, and prints progress every second.
func (p *changing) add(done deliveries.Done) {
	p.done += done.Changed
	if done.Note != "" {
		p.note = done.Note
	}
	if now := time.Now(); now.Sub(p.told) >= time.Second {
		p.told = now
		fmt.Fprintf(p.w.err, "%d %s so far\n", p.done, p.past())
	}
}

// rest waits as the rate demands.
func (p *changing) rest(ctx context.Context, n int) error {
	if p.rate == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(time.Duration(float64(n) / p.rate * float64(time.Second))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// perSecond reads a rate.
func perSecond(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds, ok := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	if err != nil || !ok || !(n > 0) || n > 1e6 {
		return 0, errors.New("want a rate such as 10/s, 300/m or 5000/h")
	}
	return n / seconds, nil
}
