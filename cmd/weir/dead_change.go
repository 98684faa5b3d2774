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

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// A changing is a redrive or a drop of many, under way.
type changing struct {
	w    world
	m    *mail
	do   string
	rate float64 // deliveries a second; 0 means as fast as it goes
	ends bool    // those whose callers' tokens have ended are redriven, too
	done int
	note string
	told time.Time // when progress was told last
}

// deadChange redrives or drops dead letters, by ID or by choice.
func deadChange(ctx context.Context, w world, do string) (err error) {
	f := w.flags("dead "+do, "[ID ...]")
	m, c := w.mailFlags(f), choiceFlags(f)
	all := f.Bool("all", false, "all dead letters")
	most := f.Int("most", 0, "how many at most of those that flags choose; 0 for all")
	p := &changing{w: w, m: m, do: do, told: time.Now()}
	f.Func("rate", "how many at most in a time, such as `10/s`, 300/m or 5000/h; without it as fast as they can be queued. The policy's limits hold in any case", func(v string) (err error) {
		p.rate, err = perSecond(v)
		return err
	})
	if do == "redrive" {
		f.BoolVar(&p.ends, "token-ended", false, "also those whose callers' tokens have ended: they go with the credentials that weir adds, whatever the callers may do now")
	}
	queue := ""
	if do == "redrive" {
		f.StringVar(&queue, "queue", "", "move all messages of the dead letter queue of the queue with this `URL` back to it")
	}
	ids, err := w.ids(f)
	if err != nil {
		return err
	}
	if queue != "" {
		return w.moveMessages(ctx, f, queue, p.rate)
	}
	if wrong := misordered(ids, c, *all, *most); wrong != "" {
		fmt.Fprintf(w.err, "weir dead %s: %s\n", do, wrong)
		return cli.ErrUsage
	}
	if err := m.open(ctx, f, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends the command at once
	if len(ids) > 0 {
		err = p.each(ctx, ids)
	} else {
		err = p.many(ctx, deliveries.Order{Choice: *c, All: *all, TokenEnded: p.ends}, *most)
	}
	return p.report(ctx, err)
}

// report says how many were done, also where it ended early.
func (p *changing) report(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil && err != nil:
		fmt.Fprintf(p.w.out, "%d %s, then it was stopped; the others are as they were\n", p.done, p.past())
		err = cli.ErrFound
	case err == nil && p.done == 0 && p.note == "":
		fmt.Fprintf(p.w.out, "0 %s: there is no such dead letter\n", p.past())
	case err == nil || p.done > 0 || errors.Is(err, cli.ErrFound):
		fmt.Fprintf(p.w.out, "%d %s\n", p.done, p.past())
	}
	if p.note != "" {
		fmt.Fprintln(p.w.out, p.note)
	}
	return err
}

// misordered says what is wrong with how deliveries are named.
func misordered(ids []string, c *deliveries.Choice, all bool, most int) string {
	chosen := c.Upstream != "" || c.Reason != "" || c.Owner != "" || c.Older != ""
	switch {
	case len(ids) > 0 && (chosen || all):
		return "give IDs, or flags that choose, not both"
	case chosen && all:
		return "-all is for all; leave it out, or the flags that choose"
	case len(ids) == 0 && !chosen && !all:
		return "name deliveries by their IDs, choose with -upstream, -reason, -owner or -older, or say -all"
	case len(ids) > 0 && most != 0:
		return "-most bounds what flags choose; with IDs leave it out"
	case most < 0:
		return "-most must not be negative"
	}
	return ""
}

func (p *changing) past() string {
	if p.do == "drop" {
		return "dropped"
	}
	return "redriven"
}

// each handles deliveries one by one, and says of each what is wrong with it.
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

// post sends an order, whose answer it hears though the command is stopped meanwhile: what was done is to be told.
func (p *changing) post(ctx context.Context, path string, o deliveries.Order) (deliveries.Done, error) {
	return p.m.post(context.WithoutCancel(ctx), path, o)
}

// largestStep is how many are changed at once.
const largestStep = 200

// many handles what an order chooses, step by step. What dies again meanwhile is not handled again: it
// died after the instant that the first answer names.
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

// add counts what was done, and tells of progress every second.
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

// rest waits as the rate says.
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
		return 0, errors.New("want a number in a time, such as 10/s, 300/m or 5000/h")
	}
	return n / seconds, nil
}
