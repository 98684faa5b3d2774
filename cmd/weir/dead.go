package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

func newDead(w world) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:   "dead COMMAND",
		Short: "List, show, redrive and drop dead letters",
		Long: `List, show, redrive and drop dead letters. A dead letter is a delivery that weir gave up on: it is not sent again unless an operator redrives it.

weir asks the admin listener of a running weir. With --file, it opens a deliveries file, which no running weir may use. With --config, it opens the
file or database of the configuration. With --queue, list and redrive apply to SQS messages that weir could not accept.`,
		Example: `  weir dead list --upstream hooks --older 1h
  weir dead redrive --all --rate 10/s`,
	})
	c.AddCommand(newDeadList(w), newDeadShow(w), newDeadChange(w, "redrive"), newDeadChange(w, "drop"))
	return c
}

// A letterSource is the place of dead letters: a running weir, a file, or a database.
type letterSource struct {
	running *admin
	file    string
	config  string
	env     func(string) (string, bool)
	ask     func(ctx context.Context, method, path string, body []byte) ([]byte, error)
	close   func() error
}

func (w world) letterFlags(c *cobra.Command) *letterSource {
	m := &letterSource{running: w.adminFlags(c), env: w.env}
	c.Flags().StringVar(&m.file, "file", "", "open the deliveries in `FILE`, which no running weir may use")
	c.Flags().StringVar(&m.config, "config", "", "open the deliveries of configuration `FILE` instead of calling a running weir")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		given := 0
		for _, name := range []string{"admin", "file", "config"} {
			if c.Flags().Changed(name) {
				given++
			}
		}
		if given > 1 {
			return usagef("use only one of --admin, --file and --config")
		}
		return nil
	}
	return m
}

// open opens the source. changes specifies whether the command changes deliveries. The caller must call close at the end.
func (m *letterSource) open(ctx context.Context, changes bool) (err error) {
	m.ask, m.close = m.running.ask, func() error { return nil }
	if m.file != "" || m.config != "" {
		m.ask, m.close, err = askKept(ctx, func(ctx context.Context) (delivery.Queue, error) { return m.kept(ctx, changes) })
	}
	return err
}

// kept opens the deliveries without a running weir.
func (m *letterSource) kept(ctx context.Context, changes bool) (delivery.Queue, error) {
	c := &config.Deliveries{File: m.file}
	if m.config != "" {
		file, err := config.Load(m.config, m.env)
		if err != nil {
			return nil, err
		}
		c = file.Deliveries
	}
	return serve.OpenDeliveries(ctx, c, m.env, changes)
}

// get reads a response.
func (m *letterSource) get(ctx context.Context, path string, to any) error {
	body, err := m.ask(ctx, http.MethodGet, deliveries.Path+path, nil)
	if err == nil {
		err = m.running.decode(body, to)
	}
	return err
}

// post sends an order.
func (m *letterSource) post(ctx context.Context, path string, order any) (done deliveries.Done, err error) {
	text, err := json.Marshal(order)
	if err != nil {
		return done, err
	}
	body, err := m.ask(ctx, http.MethodPost, deliveries.Path+path, text)
	if err == nil {
		err = m.running.decode(body, &done)
	}
	return done, err
}

// choiceFlags adds the flags that select dead letters.
func (w world) choiceFlags(c *cobra.Command, running *admin) *deliveries.Choice {
	o, f := &deliveries.Choice{Status: delivery.Failed}, c.Flags()
	f.StringVar(&o.Upstream, "upstream", "", "only dead letters of `UPSTREAM`")
	w.completeFlag(c, "upstream", running, upstreamName)
	f.Func("reason", "only dead letters with `REASON`: "+strings.Join(reasons(), ", "), func(v string) error {
		o.Reason = delivery.Reason(v)
		return nil
	})
	completeFixed(c, "reason", reasons()...)
	f.StringVar(&o.Owner, "owner", "", "only dead letters that `CALLER` submitted")
	f.StringVar(&o.Older, "older", "", "only deliveries that became dead letters `DURATION` ago or earlier")
	return o
}

func reasons() (all []string) {
	for _, r := range delivery.Reasons {
		all = append(all, string(r))
	}
	return all
}

func newDeadList(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List dead letters",
		Long:  "List dead letters, the most recently accepted first.",
		Example: `  weir dead list --upstream hooks
  weir dead list --older 24h --json`,
	}
	m := w.letterFlags(c)
	choice := w.choiceFlags(c, m.running)
	oldest := c.Flags().Bool("oldest", false, "list the oldest first")
	most := c.Flags().Int("limit", 100, "list at most `N`; 0 for all")
	asJSON := c.Flags().Bool("json", false, "print one JSON object per line")
	queue := c.Flags().String("queue", "", "print the number of messages in the dead letter queue of the SQS queue at `URL`, and the state of the last redrive")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *queue != "" {
			if err := onlyWithQueue(c, nil, "json"); err != nil {
				return err
			}
			return w.messages(c.Context(), *queue, *asJSON)
		}
		return w.listLetters(c.Context(), m, choice, *oldest, *most, *asJSON)
	}
	return c
}

// listLetters prints dead letters, the last accepted first.
func (w world) listLetters(ctx context.Context, m *letterSource, c *deliveries.Choice, oldest bool, most int, asJSON bool) (err error) {
	if err := m.open(ctx, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	print := w.letterLines
	if asJSON {
		print = w.letterJSON
	}
	q := query(c)
	if oldest {
		q.Set("oldest", "true")
	}
	for printed := 0; ; {
		q.Set("limit", strconv.Itoa(pageOf(most, printed)))
		var p deliveries.Page
		if err := m.get(ctx, "?"+q.Encode(), &p); err != nil {
			return err
		}
		if err := print(p.Deliveries, printed == 0); err != nil {
			return err
		}
		if printed += len(p.Deliveries); p.Next == "" {
			return nil
		}
		if most > 0 && printed >= most {
			fmt.Fprintf(w.err, "there are more dead letters: --limit 0 lists all\n")
			return nil
		}
		q.Set("cursor", p.Next)
		if q.Has("older") { // the cursor belongs to the time that this meant
			q.Del("older")
			q.Set("before", p.Before.Format(time.RFC3339Nano))
		}
	}
}

// pageOf returns the number of letters to request next.
func pageOf(most, printed int) int {
	if most <= 0 {
		return largestStep
	}
	return min(largestStep, most-printed)
}

// query returns a choice as parameters.
func query(c *deliveries.Choice) url.Values {
	q := url.Values{}
	for name, v := range map[string]string{"upstream": c.Upstream, "status": string(c.Status), "reason": string(c.Reason), "owner": c.Owner, "older": c.Older} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return q
}

const letterColumns = "%-36s  %-20s  %-12s  %-13s  %5v  %s\n"

// letterLines prints dead letters as a table. The first page starts with the names of columns.
func (w world) letterLines(all []deliveries.View, first bool) error {
	if first {
		fmt.Fprintf(w.out, letterColumns, "ID", "DIED", "UPSTREAM", "REASON", "TRIES", "WHY")
	}
	for i := range all {
		v := &all[i]
		if _, err := fmt.Fprintf(w.out, letterColumns, v.ID, v.Changed.UTC().Format(time.DateTime+"Z"), plain(v.Upstream), v.Reason, v.Attempts, plain(v.Detail)); err != nil {
			return err
		}
	}
	return nil
}

func (w world) letterJSON(all []deliveries.View, _ bool) error {
	lines := json.NewEncoder(w.out)
	for i := range all {
		if err := lines.Encode(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

// plain returns a text without control characters, which could change a terminal.
func plain(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

func newDeadShow(w world) *cobra.Command {
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show a delivery with every attempt",
		Long:    "Show a delivery with every attempt and the upstream's responses.",
		Example: "  weir dead show 01JZ4T2M8Q",
	}
	m, asJSON := w.letterFlags(c), jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error { return w.showLetter(c.Context(), m, args[0], *asJSON) }
	return c
}

// showLetter prints a delivery with every attempt.
func (w world) showLetter(ctx context.Context, m *letterSource, id string, asJSON bool) (err error) {
	if err := m.open(ctx, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	var d deliveries.Whole
	if err := m.get(ctx, "/"+url.PathEscape(id), &d); err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w.out)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	w.letter(&d)
	return nil
}

// letter prints a delivery.
func (w world) letter(d *deliveries.Whole) {
	instant := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	target := d.Path
	if d.Query != "" {
		target += "?" + d.Query
	}
	for _, l := range [][2]string{
		{"id", d.ID}, {"status", string(d.Status)}, {"reason", string(d.Reason)}, {"why", d.Detail}, {"upstream", d.Upstream},
		{"request", fmt.Sprintf("%s %s (%d bytes)", d.Method, target, d.Bytes)}, {"submitted by", d.Owner}, {"correlation id", d.Correlation},
		{"idempotency key", d.Key}, {"order key", d.OrderKey}, {"accepted", instant(d.Accepted)}, {"since", instant(d.Changed)}, {"due", instant(d.Due)}, {"expires", instant(d.Expires)}, {"token expires", instant(d.TokenEnds)},
	} {
		w.line(l[0], l[1])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		w.line("header", name+": "+strings.Join(d.Header[name], ", "))
	}
	body := d.Body + string(d.BodyStart)
	if d.Longer {
		body += " ..."
	}
	w.line("body", body)
	for i := range d.History {
		a := &d.History[i]
		fmt.Fprintf(w.out, "attempt %-8d %s  series %d  %d ms  %d %s %s", a.N, instant(a.Began), a.Series, a.TookMS, a.Status, a.Class, plain(a.Code))
		if !a.Counted {
			fmt.Fprint(w.out, " (not counted)")
		}
		fmt.Fprintln(w.out)
		if a.Answer != "" {
			fmt.Fprintf(w.out, "                 answered %s\n", plain(a.Answer))
		}
	}
}

// line prints a field, unless it is empty.
func (w world) line(name, text string) {
	if text != "" {
		fmt.Fprintf(w.out, "%-16s %s\n", name, plain(text))
	}
}
