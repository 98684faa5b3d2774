package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

const deadUsage = `usage: weir dead COMMAND [flags] [ID ...]

Dead letters are deliveries that will not be sent any more, unless somebody redrives them.

  weir dead list                        the last accepted first, or -oldest; -upstream, -reason, -older choose
  weir dead show ID                     one delivery with every attempt
  weir dead redrive ID ... | flags      sends them again, as fast as limits let them, or at -rate
  weir dead drop ID ... | flags         deletes them for good

They are asked of the admin listener of a running weir; with -file of a deliveries' file that no weir has open, with
-config of the file or database that a configuration names. With -queue URL list and redrive are about messages of SQS that
could not be taken: redrive moves all of them from the queue's dead letter queue back to it.
weir dead COMMAND -h tells more; docs/reference/deliveries.md tells all.
`

// runDead runs weir dead.
func runDead(ctx context.Context, w world) error {
	name := ""
	if len(w.args) > 0 {
		name, w.args = w.args[0], w.args[1:]
	}
	switch name {
	case "list":
		return deadList(ctx, w)
	case "show":
		return deadShow(ctx, w)
	case "redrive", "drop":
		return deadChange(ctx, w, name)
	case "help", "-h", "-help", "--help":
		_, err := fmt.Fprint(w.out, deadUsage)
		return err
	}
	if name != "" {
		fmt.Fprintf(w.err, "weir dead: there is no command %q\n\n", name)
	}
	fmt.Fprint(w.err, deadUsage)
	return cli.ErrUsage
}

// A mail is where deliveries are asked for: a running weir, or the file of one that does not run.
type mail struct {
	running *admin
	file    string
	config  string
	env     func(string) (string, bool)
	ask     func(ctx context.Context, method, path string, body []byte) ([]byte, error)
	close   func() error
}

func (w world) mailFlags(f *flag.FlagSet) *mail {
	m := &mail{running: w.adminFlags(f), env: w.env}
	f.StringVar(&m.file, "file", "", "the deliveries' `file`, in place of a running weir; no weir may have it open")
	f.StringVar(&m.config, "config", "", "the configuration `file` that says where deliveries are kept, in place of a running weir")
	return m
}

// open is called once flags are parsed, by a command that changes deliveries or only looks; close then lets go of the
// file.
func (m *mail) open(ctx context.Context, f *flag.FlagSet, changes bool) (err error) {
	m.ask, m.close = m.running.ask, func() error { return nil }
	switch {
	case m.file == "" && m.config == "":
		return nil
	case given(f, "admin") || m.file != "" && m.config != "":
		return errors.New("give one of -file, -config and -admin, not both of two")
	}
	m.ask, m.close, err = askKept(ctx, func(ctx context.Context) (delivery.Queue, error) { return m.kept(ctx, changes) })
	return err
}

// kept opens the deliveries without a running weir.
func (m *mail) kept(ctx context.Context, changes bool) (delivery.Queue, error) {
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

// get reads an answer.
func (m *mail) get(ctx context.Context, path string, to any) error {
	body, err := m.ask(ctx, http.MethodGet, deliveries.Path+path, nil)
	if err == nil {
		if err = json.Unmarshal(body, to); err != nil {
			err = fmt.Errorf("read the answer: %w; is it a weir?", err)
		}
	}
	return err
}

// post sends an order.
func (m *mail) post(ctx context.Context, path string, order any) (done deliveries.Done, err error) {
	text, err := json.Marshal(order)
	if err != nil {
		return done, err
	}
	body, err := m.ask(ctx, http.MethodPost, deliveries.Path+path, text)
	if err == nil {
		if err = json.Unmarshal(body, &done); err != nil {
			err = fmt.Errorf("read the answer: %w; is it a weir?", err)
		}
	}
	return done, err
}

// choiceFlags are those that choose dead letters.
func choiceFlags(f *flag.FlagSet) *deliveries.Choice {
	c := &deliveries.Choice{Status: delivery.Failed}
	f.StringVar(&c.Upstream, "upstream", "", "only those of the upstream")
	f.Func("reason", "only those that died of `it`: "+reasons(), func(v string) error {
		c.Reason = delivery.Reason(v)
		return nil
	})
	f.StringVar(&c.Owner, "owner", "", "only those that the caller handed in")
	f.StringVar(&c.Older, "older", "", "only those that died so long ago, or longer: `24h`")
	return c
}

func reasons() string {
	var all []string
	for _, r := range delivery.Reasons {
		all = append(all, string(r))
	}
	return strings.Join(all, ", ")
}

// deadList prints dead letters, those that were accepted last first.
func deadList(ctx context.Context, w world) (err error) {
	f := w.flags("dead list", "")
	m, c := w.mailFlags(f), choiceFlags(f)
	oldest := f.Bool("oldest", false, "the oldest first, of all upstreams")
	most := f.Int("limit", 100, "how many at most; 0 for all")
	asJSON := f.Bool("json", false, "print each as a line of JSON")
	queue := f.String("queue", "", "say how many messages lie in the dead letter queue of the queue with this `URL`, and which move of them was the last")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	if *queue != "" {
		return w.messages(ctx, f, *queue, *asJSON)
	}
	if err := m.open(ctx, f, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	print := w.letterLines
	if *asJSON {
		print = w.letterJSON
	}
	q := query(c)
	if *oldest {
		q.Set("oldest", "true")
	}
	for printed := 0; ; {
		q.Set("limit", strconv.Itoa(pageOf(*most, printed)))
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
		if *most > 0 && printed >= *most {
			fmt.Fprintf(w.err, "there are more; -limit 0 shows all\n")
			return nil
		}
		q.Set("cursor", p.Next)
		if q.Has("older") { // the cursor belongs to the instant that this meant
			q.Del("older")
			q.Set("before", p.Before.Format(time.RFC3339Nano))
		}
	}
}

// pageOf is how many to ask for at once.
func pageOf(most, printed int) int {
	if most <= 0 {
		return largestStep
	}
	return min(largestStep, most-printed)
}

// query is a choice as parameters.
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

// letterLines prints dead letters for people, below the names of columns if they are the first.
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

// plain is text that others have written, without what would steer a terminal.
func plain(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// deadShow prints a delivery with every attempt.
func deadShow(ctx context.Context, w world) (err error) {
	f := w.flags("dead show", "ID")
	m := w.mailFlags(f)
	asJSON := f.Bool("json", false, "print JSON")
	ids, err := w.ids(f)
	if err != nil {
		return err
	}
	if len(ids) != 1 {
		fmt.Fprintln(w.err, "weir dead show: name one delivery by its ID")
		return cli.ErrUsage
	}
	if err := m.open(ctx, f, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	var d deliveries.Whole
	if err := m.get(ctx, "/"+url.PathEscape(ids[0]), &d); err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(w.out)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	w.letter(&d)
	return nil
}

// ids parses flags that stand before, between and after IDs.
func (w world) ids(f *flag.FlagSet) (ids []string, err error) {
	for {
		if err := w.parse(f, len(w.args)); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return ids, nil
		}
		ids, w.args = append(ids, f.Arg(0)), f.Args()[1:]
	}
}

// letter prints one for people.
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
		{"request", fmt.Sprintf("%s %s (%d bytes)", d.Method, target, d.Bytes)}, {"handed in by", d.Owner}, {"correlation id", d.Correlation},
		{"idempotency key", d.Key}, {"order key", d.OrderKey}, {"accepted", instant(d.Accepted)}, {"since", instant(d.Changed)}, {"due", instant(d.Due)}, {"expires", instant(d.Expires)}, {"token ends", instant(d.TokenEnds)},
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

// line prints what is known of something, with its name before it.
func (w world) line(name, text string) {
	if text != "" {
		fmt.Fprintf(w.out, "%-16s %s\n", name, plain(text))
	}
}
