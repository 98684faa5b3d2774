package play

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Report is the result of a story for an upstream.
type Report struct {
	Story     string    `json:"story"`
	Ask       float64   `json:"ask"`     // calls per second of the callers
	Does      float64   `json:"does"`    // calls per second that the machine can complete
	Assumed   []string  `json:"assumed"` // values that neither the story nor the file states
	NotPlayed []string  `json:"not_played"`
	Verdict   string    `json:"verdict"`
	Direct    *Score    `json:"direct,omitempty"` // without weir; nil if the story has several processes
	Weir      *Score    `json:"weir,omitempty"`
	Checks    []Checked `json:"checks,omitempty"`

	story Story
}

// Checked is the result of an expectation with one seed.
type Checked struct {
	Seed   uint64 `json:"seed"`
	Figure string `json:"figure"`
	Bound  string `json:"bound"`
	Found  string `json:"found"`
	Holds  bool   `json:"holds"`
}

// Holds reports whether all expectations hold.
func (r *Report) Holds() bool {
	for _, c := range r.Checks {
		if !c.Holds {
			return false
		}
	}
	return true
}

// Play plays a story with a target. Its expectations are checked with several seeds, beginning with seed. progress
// receives a text before each run. If ctx ends earlier, the report covers the story until then, and expectations
// are not checked.
func (t *Target) Play(ctx context.Context, s Story, seed uint64, seeds int, progress func(string)) (*Report, error) {
	s, assumed, err := t.Complete(s)
	if err != nil {
		return nil, fmt.Errorf("story %q: %w", s.Title, err)
	}
	r := &Report{Story: s.Title, Ask: s.Callers.Ask, Does: s.Machine.Does, Assumed: assumed, NotPlayed: t.Unplayed(&s), story: s}
	if s.Processes == 0 {
		progress(fmt.Sprintf("%s: %s: without weir", t.Name, s.Title))
		if r.Direct, err = s.Play(ctx, seed, nil, nil); err != nil {
			return nil, err
		}
	}
	store := t.Store
	if store == nil {
		store = &Store{}
	}
	for i := range uint64(max(1, seeds)) {
		if ctx.Err() != nil || i > 0 && len(s.Expect) == 0 {
			break
		}
		progress(fmt.Sprintf("%s: %s: with the file, seed %d", t.Name, s.Title, seed+i))
		score, err := s.Play(ctx, seed+i, &t.Policy, store)
		if err != nil {
			return nil, err
		}
		if r.Weir == nil {
			r.Weir = score
		}
		for j := range s.Expect {
			e := &s.Expect[j]
			if score.EndedMS == 0 {
				found, holds := e.Check(score)
				r.Checks = append(r.Checks, Checked{seed + i, e.Figure, e.Text, found, holds})
			}
		}
	}
	r.Verdict = r.verdict()
	return r, nil
}

// verdict describes both ways in one sentence each.
func (r *Report) verdict() string {
	var all []string
	for _, way := range []struct {
		name  string
		score *Score
	}{{"without weir", r.Direct}, {"with the file", r.Weir}} {
		if way.score != nil {
			all = append(all, way.name+": "+r.story.ending(way.score))
		}
	}
	return strings.Join(all, "; ")
}

// ending describes how a story ended.
func (s *Story) ending(x *Score) string {
	_, to := s.trouble()
	flaps := ""
	if minutes := (s.Length - to).Minutes(); float64(x.Openings) >= 3*minutes && x.Openings >= 3 {
		flaps = fmt.Sprintf(", the breaker opens %d times after the trouble", x.Openings)
	}
	switch {
	case x.EndedMS > 0:
		return fmt.Sprintf("interrupted after %.0f s", float64(x.EndedMS)/1000)
	case x.Stuck():
		return fmt.Sprintf("stuck, %s answered at the end", percent(x.After)) + flaps
	case x.RecoveredMS != nil:
		return fmt.Sprintf("recovers in %.1f s", float64(*x.RecoveredMS)/1000) + flaps
	}
	return fmt.Sprintf("does not reach 99%%, %s answered at the end", percent(x.After)) + flaps
}

// Text returns a report for a terminal of 80 columns.
func (r *Report) Text(p Palette) string {
	var b strings.Builder
	s := &r.story
	fmt.Fprintf(&b, "\n%s\n", Wrap("", r.Story))
	if len(r.Assumed) > 0 {
		b.WriteString(Wrap("  ", "assumed: "+strings.Join(r.Assumed, "; ")) + "\n")
	}
	if len(r.NotPlayed) > 0 {
		b.WriteString(Wrap("  ", "not played: "+strings.Join(r.NotPlayed, ", ")) + "\n")
	}
	switch {
	case r.Weir != nil && r.Weir.Fleet != nil:
		b.WriteString(r.fleetTable())
	case r.Direct != nil && r.Weir != nil:
		b.WriteString(s.Panels(r.Direct, r.Weir, p) + s.Table(r.Direct, r.Weir))
	}
	b.WriteString("\n")
	for _, line := range strings.Split(r.Verdict, "; ") {
		b.WriteString(Wrap("", line) + "\n")
	}
	for _, c := range r.Checks {
		word := "ok    "
		if !c.Holds {
			word = "FAILED"
		}
		fmt.Fprintf(&b, "%s %s: %s, found %s (seed %d)\n", word, c.Figure, c.Bound, c.Found, c.Seed)
	}
	return b.String()
}

// fleetTable returns the figures of a story with several processes.
func (r *Report) fleetTable() string {
	var b strings.Builder
	b.WriteString("\n")
	for _, f := range r.story.fleetFigures() {
		fmt.Fprintf(&b, "  %-50s%16s\n", f.name, f.of(r.Weir))
	}
	return b.String()
}

const searched = "For each load, the shortest stall that has lasting effects: 30 to 45 s after it, fewer than half of the calls are answered. " +
	"The search tried stalls from 0.25 to 32 s, each twice as long as the one before, and then bisected. It used one seed."

// SearchText returns the curves of a search for a terminal of 80 columns.
func SearchText(curves []Curve) string {
	var b strings.Builder
	b.WriteString("\n" + Wrap("", searched) + "\n\n")
	width := 24
	if len(curves) > 2 {
		width = 19
	}
	head := fmt.Sprintf("%-10s%-12s", "load", "asked")
	for _, c := range curves {
		head += fmt.Sprintf("%-*s", width, short(c.Way, width-2))
	}
	b.WriteString(strings.TrimRight(head, " ") + "\n")
	if len(curves) == 0 {
		return b.String()
	}
	for i, p := range curves[0].Points {
		row := fmt.Sprintf("%-10s%-12s", fmt.Sprintf("%.0f%%", 100*p.Load), p.asked())
		for _, c := range curves {
			row += fmt.Sprintf("%-*s", width, c.Points[i].text())
		}
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
	for _, c := range curves {
		for _, note := range c.notes() {
			b.WriteString(Wrap("", note) + "\n")
		}
	}
	return b.String()
}

// notes describes the points at which a longer stall is better.
func (c *Curve) notes() (all []string) {
	for i := range c.Points {
		p := &c.Points[i]
		if len(p.LongerFreeMS) == 0 {
			continue
		}
		var free []string
		for _, ms := range p.LongerFreeMS {
			free = append(free, fmt.Sprintf("%.4g s", float64(ms)/1000))
		}
		all = append(all, fmt.Sprintf("Not monotone: %s at %.0f%% load is stuck after %.4g s, but not after %s.",
			c.Way, 100*p.Load, float64(p.StuckMS)/1000, strings.Join(free, ", ")))
	}
	return all
}

// result describes a point.
func (p *Point) result() string {
	switch {
	case p.Unfinished:
		return "not finished"
	case p.Overloaded:
		return "overloaded"
	case p.StuckMS == 0:
		return "not by 32 s"
	}
	return fmt.Sprintf("%.3g s", float64(p.StuckMS)/1000)
}

// asked returns the calls per second of a point.
func (p *Point) asked() string { return strings.TrimSuffix(number(p.Ask), " calls/s") + "/s" }

// text describes a point. A bar shows the length of the stall: each step is twice as long.
func (p *Point) text() string {
	if p.Unfinished || p.Overloaded || p.StuckMS == 0 {
		return p.result()
	}
	bar := 1
	for ms := int64(250); ms < p.StuckMS; ms *= 2 {
		bar++
	}
	return fmt.Sprintf("%-7s %s", p.result(), strings.Repeat("▪", bar))
}

// short shortens a name from its beginning.
func short(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}

// Wrap breaks a text into lines of at most 80 columns that begin with an indent.
func Wrap(indent, text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > 80:
			b.WriteString("\n" + indent + "  ")
			column = len(indent) + 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}

// base is the story of a search: the machine and callers of the target's usual stories. The search varies the load.
func (t *Target) base() (s Story, assumed []string, err error) {
	s, assumed, err = t.Complete(Story{Name: "stall", Title: "search", Length: defaultLength})
	return s, slices.DeleteFunc(assumed, func(a string) bool { return strings.HasPrefix(a, assumedAsk) }), err
}

// A SearchReport is the result of a search for an upstream.
type SearchReport struct {
	Assumed []string `json:"assumed"`
	Curves  []Curve  `json:"curves"`
	Example string   `json:"example,omitempty"` // the story of the smallest trigger at the highest load
	Way     string   `json:"example_way,omitempty"`
	Command string   `json:"example_command,omitempty"` // plays the example
}

// Search searches for the smallest trigger without weir, with the target's policy, and with another policy unless it is nil.
func (t *Target) Search(ctx context.Context, seed uint64, name string, against *Way, progress func(done, all int)) (*SearchReport, error) {
	base, assumed, err := t.base()
	if err != nil {
		return nil, err
	}
	q := &Search{Seed: seed, Target: t, Ways: []Way{{"without weir", nil}, {name, &t.Policy}}, Progress: progress}
	if against != nil {
		q.Ways = append(q.Ways, *against)
	}
	r := &SearchReport{Assumed: assumed}
	if r.Curves, err = q.Run(ctx, base); err != nil {
		return nil, err
	}
	for _, i := range []int{1, 0} { // the file's own trigger, if there is one
		if s, ok := q.Example(base, &r.Curves[i]); ok {
			r.Example, r.Way = s.Write(), q.Ways[i].Name
			if i == 1 {
				r.Way = "with " + name
			}
			r.Command = fmt.Sprintf("weir sim --config %s --seed %d story.yaml", name, seed)
			break
		}
	}
	return r, nil
}

// Text returns the search for a terminal of 80 columns.
func (r *SearchReport) Text() string {
	var b strings.Builder
	b.WriteString(SearchText(r.Curves))
	if len(r.Assumed) > 0 {
		b.WriteString(Wrap("", "assumed: "+strings.Join(r.Assumed, "; ")) + "\n")
	}
	if r.Example != "" {
		fmt.Fprintf(&b, "\nSave this as story.yaml. It is stuck %s. Play it:\n\n  %s\n\n%s", r.Way, r.Command, r.Example)
	}
	return b.String()
}
