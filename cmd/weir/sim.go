package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/stores"
)

// A simulation has the flags of weir sim.
type simulation struct {
	config, against, upstream string
	seed                      uint64
	seeds                     int
	search, json              bool
	replay, html              string
}

func newSim(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "sim [STORY.yaml...]",
		Short: "Simulate how a configuration behaves when an upstream fails",
		Long: `Simulate how a configuration behaves when an upstream fails, in virtual time: with the limits, queues, retries and breakers of weir serve,
and a model of the upstream and its callers. Without STORY.yaml, simulate six stories for each upstream. weir sends no requests and opens no
store. docs/how-to/simulate.md explains stories and results.

The exit status is 1 if an expectation of a story does not hold, and 2 if a file is wrong.`,
		Example: `  weir sim
  weir sim --search --against new.yaml
  weir sim --replay weir.log --against new.yaml
  weir sim --seeds 5 stall.yaml`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	var s simulation
	f := c.Flags()
	f.StringVar(&s.config, "config", "weir.yaml", "configuration `FILE`")
	f.StringVar(&s.upstream, "upstream", "", "only the `UPSTREAM` with this name")
	f.Uint64Var(&s.seed, "seed", 1, "`NUMBER` that seeds the random generator")
	f.IntVar(&s.seeds, "seeds", 1, "check expectations with this `NUMBER` of seeds")
	f.BoolVar(&s.search, "search", false, "search for the shortest stall from which calls do not recover")
	f.StringVar(&s.replay, "replay", "", "replay the calls in `FILE`: an access log, or weir's log with log: attempts; - for standard input")
	f.StringVar(&s.against, "against", "", "with --search or --replay, also simulate the configuration `FILE`")
	f.BoolVar(&s.json, "json", false, "print JSON")
	f.StringVar(&s.html, "html", "", "also write a page to `FILE`")
	for _, name := range []string{"config", "against"} {
		_ = c.MarkFlagFilename(name, "yaml", "yml") // the flags exist
	}
	_ = c.MarkFlagFilename("html", "html")
	c.RunE = func(c *cobra.Command, args []string) error { return s.run(c.Context(), w, args) }
	return c
}

// A simReport is the output with --json.
type simReport struct {
	File        string         `json:"file"`
	Seed        uint64         `json:"seed"`
	NotPlayed   []string       `json:"not_played"`
	Upstreams   []simUpstream  `json:"upstreams"`
	Replay      *play.Replayed `json:"replay,omitempty"`
	Interrupted bool           `json:"interrupted,omitempty"`
}

// A simUpstream is the part of the output about an upstream.
type simUpstream struct {
	Upstream  string             `json:"upstream"`
	NotPlayed []string           `json:"not_played"`
	Skipped   []string           `json:"skipped,omitempty"` // stories that do not apply
	Stories   []*play.Report     `json:"stories,omitempty"`
	Search    *play.SearchReport `json:"search,omitempty"`
}

func (s *simulation) run(ctx context.Context, w world, files []string) error {
	if s.seeds < 1 || s.seeds > 1000 {
		return usagef("--seeds %d: want a number from 1 to 1000", s.seeds)
	}
	if s.against != "" && !s.search && s.replay == "" {
		return usagef("--against needs --search or --replay")
	}
	if s.html != "" && !strings.HasSuffix(s.html, ".html") {
		return usagef("--html %s: want a file name that ends with .html", s.html)
	}
	modes := 0
	for _, chosen := range []bool{s.search, s.replay != "", len(files) > 0} {
		if chosen {
			modes++
		}
	}
	if modes > 1 {
		return usagef("--search, --replay and STORY.yaml cannot be combined: use one of them")
	}
	p, err := s.read(w, files)
	if err != nil {
		if _, usage := errors.AsType[*usageError](err); usage {
			return err
		}
		return cli.Status(w.err, "weir sim", 2, err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the garbage collector reads the stacks of all calls in progress
	err = p.play(ctx)
	p.progress("")
	if p.upstream != "" {
		p.report.Upstreams = slices.DeleteFunc(p.report.Upstreams, func(u simUpstream) bool { return u.Upstream != p.upstream })
	}
	if p.report.Interrupted = ctx.Err() != nil; s.json && err == nil {
		e := json.NewEncoder(w.out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(p.report)
	}
	if err == nil && s.html != "" {
		err = p.writePage()
	}
	switch {
	case err != nil:
		return cli.Status(w.err, "weir sim", 2, err)
	case p.report.Interrupted:
		return errors.New("interrupted before the end")
	case p.failed:
		return cli.ErrFound
	}
	return nil
}

// A simPlay is the work of one command.
type simPlay struct {
	*simulation
	w       world
	palette play.Palette
	targets []play.Target
	others  map[string]play.Way // of --against, by upstream
	ways    []play.ReplayWay    // of --replay
	router  *proxy.Router
	stories []play.Story
	report  simReport
	failed  bool // an expectation does not hold
}

// read reads all files before anything is played.
func (s *simulation) read(w world, files []string) (*simPlay, error) {
	file, unplayed, err := simFile(s.config, w.env)
	if err != nil {
		return nil, err
	}
	_, plainly := w.env("NO_COLOR")
	p := &simPlay{simulation: s, w: w, palette: play.Palette(isTerminal(w.out) && !plainly), report: simReport{File: s.config, Seed: s.seed, NotPlayed: unplayed}}
	p.targets = targetsOf(file)
	p.ways, p.router = []play.ReplayWay{{Name: s.config, Targets: p.targets}}, proxy.NewRouter(file.Upstreams)
	var names []string
	for i := range p.targets {
		names = append(names, p.targets[i].Name)
		p.report.Upstreams = append(p.report.Upstreams, simUpstream{Upstream: p.targets[i].Name, NotPlayed: unplayedFields(file, p.targets[i].Name)})
	}
	if s.upstream != "" && !slices.Contains(names, s.upstream) {
		return nil, usagef("%s has no upstream %q; %s", s.config, s.upstream, doc.Suggest(s.upstream, names))
	}
	for _, name := range files {
		data, err := readBounded(name, play.MostStory)
		if err != nil {
			return nil, fmt.Errorf("story: %w", err)
		}
		story, err := play.Read(name, data)
		if err != nil {
			return nil, err
		}
		if story.Upstream != "" && !slices.Contains(names, story.Upstream) {
			return nil, fmt.Errorf("%s: upstream: %s has no upstream %q; %s", name, s.config, story.Upstream, doc.Suggest(story.Upstream, names))
		}
		p.stories = append(p.stories, *story)
	}
	if s.against != "" {
		other, _, err := simFile(s.against, w.env)
		if err != nil {
			return nil, err
		}
		p.others = make(map[string]play.Way)
		targets := targetsOf(other)
		p.ways = append(p.ways, play.ReplayWay{Name: s.against, Targets: targets})
		for _, t := range targets {
			p.others[t.Name] = play.Way{Name: s.against, Policy: &t.Policy}
		}
	}
	if s.html != "" { // a page that cannot be written is an error before everything is played
		f, err := os.OpenFile(s.html, os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return nil, fmt.Errorf("page: %w", err)
		}
		return p, f.Close()
	}
	return p, nil
}

// simFile reads a configuration as weir serve does, but no certificates. unplayed are the fields of the file, except
// upstreams, that no story plays.
func simFile(path string, env func(string) (string, bool)) (file *config.File, unplayed []string, err error) {
	data, err := readBounded(path, play.MostStory)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	if file, err = config.Parse(path, data, env); err != nil {
		return nil, nil, err
	}
	r := doc.Reader{File: path, What: "a configuration", Bounds: doc.Bounds{Bytes: play.MostStory, Nodes: 100_000, Depth: 20}}
	for _, e := range r.Read(data).All() {
		played := e.Name == "upstreams" || e.Name == "presets" || e.Name == "store" && shared(file)
		if !played {
			unplayed = append(unplayed, e.Name)
		}
	}
	return file, unplayed, nil
}

// readBounded reads a file, up to one byte more than most, which its parser refuses.
func readBounded(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// shared reports whether processes share the limits of a file.
func shared(file *config.File) bool {
	return file.Store != nil && !file.Store.Memory && file.Store.File == ""
}

// targetsOf returns the upstreams of a file.
func targetsOf(file *config.File) (all []play.Target) {
	var store *play.Store
	if shared(file) {
		c := file.Store.WithDefaults()
		store = &play.Store{Options: stores.FleetOptions(c, fleet.Options{}), Latency: time.Millisecond}
		if c.DynamoDB != nil {
			store.Latency = 10 * time.Millisecond
		}
	}
	for i := range file.Upstreams {
		t := play.Target{Name: file.Upstreams[i].Name, Policy: file.Upstreams[i].Policy, Store: store}
		t.Policy.Shadow = nil // see unplayedFields
		if _, model := file.LLM[t.Name]; model {
			t.Takes, t.Patience = 2*time.Second, 20*time.Second
		}
		all = append(all, t)
	}
	return all
}

// playedFields are the fields of an upstream that stories play.
var playedFields = map[string]bool{
	"url": true, "preset": true, "limits": true, "operations": true, "retry": true, "budget": true, "quota": true, "breaker": true,
	"concurrency": true, "max_wait": true, "ask_again": true, "fair": true, "keys": true, "max_pause": true, "timeouts": true,
}

// unplayedFields returns the fields of an upstream and its preset that no story plays.
func unplayedFields(file *config.File, upstream string) []string {
	var all []string
	if i := slices.IndexFunc(file.Upstreams, func(u config.Upstream) bool { return u.Name == upstream }); i >= 0 && len(file.Upstreams[i].Policy.Shadow) > 0 {
		all = append(all, "shadow of limits")
	}
	for _, name := range slices.Sorted(maps.Keys(file.Places[upstream])) {
		if !playedFields[name] && !strings.Contains(name, ".") {
			all = append(all, name)
		}
		if name == "timeouts" {
			all = append(all, "timeouts other than attempt and call")
		}
	}
	return all
}

// intro describes what the results are about.
func (p *simPlay) intro() string {
	return fmt.Sprintf("%s, seed %d. weir's own code runs in virtual time. Callers and the machine behind each upstream "+
		"are models. No address, credential or store is used.", p.config, p.seed)
}

// play plays everything and prints each result when it is known.
func (p *simPlay) play(ctx context.Context) error {
	p.print(play.Wrap("", p.intro()) + "\n")
	p.list("not played", p.report.NotPlayed)
	if p.replay != "" {
		return p.playRecording(ctx)
	}
	for i := range p.targets {
		if p.upstream != "" && p.upstream != p.targets[i].Name || ctx.Err() != nil {
			continue
		}
		if err := p.playUpstream(ctx, &p.targets[i], &p.report.Upstreams[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *simPlay) playUpstream(ctx context.Context, t *play.Target, r *simUpstream) error {
	p.print(fmt.Sprintf("\n== upstream %s ==\n", t.Name))
	p.list("not played", r.NotPlayed)
	if p.search {
		var other *play.Way
		if w, ok := p.others[t.Name]; ok {
			other = &w
		}
		var err error
		r.Search, err = t.Search(ctx, p.seed, p.config, other, func(done, all int) {
			p.progress(fmt.Sprintf("%s: searched %d of %d points", t.Name, done, all))
		})
		if err == nil {
			p.print(r.Search.Text())
		}
		return err
	}
	stories := p.stories
	if len(stories) == 0 {
		stories, r.Skipped = t.Stories()
		p.list("not applicable", r.Skipped)
	}
	for i := range stories {
		if ctx.Err() != nil {
			return nil
		}
		if of := stories[i].Upstream; of != "" && of != t.Name {
			continue
		}
		one, err := t.Play(ctx, stories[i], p.seed, p.seeds, p.progress)
		if err != nil {
			return err
		}
		r.Stories = append(r.Stories, one)
		p.failed = p.failed || !one.Holds()
		p.print(one.Text(p.palette))
		if !one.Holds() {
			p.print("repeat it: " + p.repeat(t.Name, one) + "\n")
		}
	}
	return nil
}

// playRecording plays recorded calls with each configuration.
func (p *simPlay) playRecording(ctx context.Context) error {
	name, in, size := p.replay, io.NopCloser(p.w.input()), int64(0)
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("recording: %w", err)
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in = f
	}
	defer in.Close()
	read := &byteCounter{Reader: in}
	rec, err := play.NewRecording(name, read, p.seed)
	if err != nil {
		return err
	}
	rec.Route = p.router.Find
	rec.Progress = func(lines int64) {
		share := ""
		if size > 0 {
			share = fmt.Sprintf(", %d%%", 100*read.n/size)
		}
		p.progress(fmt.Sprintf("%s: %d lines%s", name, lines, share))
	}
	p.report.Replay, err = (&play.Replay{Seed: p.seed, Ways: p.ways, Only: p.upstream}).Play(ctx, rec)
	if err == nil {
		p.print(p.report.Replay.Text())
	}
	return err
}

// A byteCounter counts the bytes that were read.
type byteCounter struct {
	io.Reader
	n int64
}

func (c *byteCounter) Read(b []byte) (n int, err error) {
	n, err = c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// repeat returns the command that repeats the first expectation that does not hold.
func (p *simPlay) repeat(upstream string, r *play.Report) string {
	i := slices.IndexFunc(r.Checks, func(c play.Checked) bool { return !c.Holds })
	return fmt.Sprintf("weir sim --config %s --upstream %s --seed %d STORY.yaml", p.config, upstream, r.Checks[i].Seed)
}

func (p *simPlay) list(title string, all []string) {
	if len(all) > 0 {
		p.print(play.Wrap("", title+": "+strings.Join(all, ", ")) + "\n")
	}
}

// print prints a result, unless all are printed as JSON in the end.
func (p *simPlay) print(text string) {
	if !p.json {
		p.progress("")
		_, _ = io.WriteString(p.w.out, text)
	}
}

// progress shows the present run. A terminal shows only the latest text.
func (p *simPlay) progress(text string) {
	switch {
	case isTerminal(p.w.err):
		fmt.Fprintf(p.w.err, "\r\x1b[K%.79s", text)
	case text != "":
		fmt.Fprintln(p.w.err, text)
	}
}
