package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sim"
)

// Limits of a replay.
const (
	mostInSecond = 100_000
	mostRunning  = 100_000 // calls at a time, of all configurations
	mostClients  = 10_000  // of an upstream, with separate rows
	recent       = 10 * time.Second
	lastWait     = time.Hour // how long the replay continues after the last recorded call
)

// A Replay plays recorded calls in virtual time with configurations. Each configuration gets the same calls. The
// upstreams respond as recorded; see server.
type Replay struct {
	Seed uint64
	Ways []ReplayWay
	Only string // the upstream that is played; "" means all

	begun   bool
	running int // calls in progress
	world   *sim.World
	servers map[string]*server
	counts  Replayed
}

// A ReplayWay is a configuration.
type ReplayWay struct {
	Name    string
	Targets []Target
}

// A server is a recorded upstream. Its responses follow the recording:
//
//   - An attempt takes as long as the recorded one, or as long as recent ones, or as the target states.
//   - In a second with recorded throttles it accepts as many attempts as it accepted then, and throttles the others.
//   - The first attempt of a call that is sent at most a second later than recorded fails if it failed then. Other attempts fail
//     with the share of failures in the last 10 recorded seconds.
//   - A rejected call is always rejected.
type server struct {
	lanes   []*lane // by way; nil if the configuration lacks the upstream
	seconds []second
	takes   time.Duration // average of recent successful attempts; 0 if unknown
	clients map[string]*Row
	columns int // of each client: the recording and each way
	all     *Row
	access  bool // the recording is an access log
	refused bool // the recording has refused calls
	billed  map[string]bool
}

// A second counts the attempts that the recording has in one second.
type second struct {
	at                          time.Duration // when it begins
	accepted, throttled, failed int
	hint                        time.Duration // the longest
}

// A lane is an upstream with a configuration.
type lane struct {
	target    *Target
	upstream  *weir.Upstream
	transport httpx.Transport
	rand      *rand.Rand
	scopes    []string
	second    time.Duration // the present second
	accepted  int           // attempts in it
}

// Play plays a recording. If ctx ends earlier, the result covers the calls until then.
func (r *Replay) Play(ctx context.Context, rec *Recording) (*Replayed, error) {
	r.world = sim.New(r.Seed)
	defer r.world.Close()
	r.servers = make(map[string]*server)
	for i := range r.Ways[0].Targets {
		if t := &r.Ways[0].Targets[i]; r.Only == "" || r.Only == t.Name {
			r.servers[t.Name] = nil // until its first call
		}
	}
	err := r.batches(ctx, rec)
	if err == nil && ctx.Err() == nil {
		err = r.drain(ctx)
	}
	if err == nil && ctx.Err() == nil {
		err = r.check(rec)
	}
	if err != nil {
		return nil, err
	}
	return r.result(ctx.Err() != nil, rec), nil
}

// check returns an error if the recording has no call.
func (r *Replay) check(rec *Recording) error {
	switch c := &rec.counts; {
	case c.Lines == 0 || !rec.found && c.Skipped == 0:
		return fmt.Errorf("%s: is empty: want weir's log with log: attempts, or an access log", rec.name)
	case !rec.found:
		return rec.unknownFormat()
	case r.counts.Calls > 0:
	case r.Only != "":
		return fmt.Errorf("%s: has no call to upstream %s in %d lines; replay without --upstream to see which upstreams it has", rec.name, r.Only, c.Lines)
	case len(c.Unknown) > 0:
		return fmt.Errorf("%s: has no call to an upstream in %s; its calls go to %s", rec.name, r.Ways[0].Name, names(c.Unknown))
	default:
		return fmt.Errorf("%s: has no attempts in %d lines: set log: attempts in weir.yaml, and record again", rec.name, c.Lines)
	}
	return nil
}

// batches plays the calls second by second. The responses of a second are known before it is played.
func (r *Replay) batches(ctx context.Context, rec *Recording) error {
	var batch []*entry
	for {
		e, err := rec.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(batch) > 0 && (e == nil || e.at.Truncate(time.Second) > batch[0].at.Truncate(time.Second)) {
			if err := r.play(batch, rec); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if e == nil || ctx.Err() != nil {
			return nil
		}
		if len(batch) >= mostInSecond {
			return fmt.Errorf("%s:%d: more than %d attempts begin in the second %s; replay a smaller recording", rec.name, e.line, mostInSecond, stamp(e.at))
		}
		batch = append(batch, e)
	}
}

// play plays the calls of a second.
func (r *Replay) play(batch []*entry, rec *Recording) error {
	begin := batch[0].at.Truncate(time.Second)
	if !r.begun {
		r.begun = true
		r.counts.from = begin
		if err := r.world.RunUntil(begin); err != nil {
			return err
		}
	}
	r.counts.to = batch[len(batch)-1].at
	var calls []*entry
	for _, e := range batch {
		s, known := r.servers[e.upstream]
		if !known {
			if r.Only == "" {
				rec.unplayed(e.upstream)
			}
			continue
		}
		if s == nil {
			var err error
			if s, err = r.open(e.upstream); err != nil {
				return err
			}
		}
		s.identify(e)
		s.record(e)
		if e.call {
			calls = append(calls, e)
		}
	}
	r.counts.Calls += len(calls)
	var tooMany error
	r.world.Go(func() {
		for _, e := range calls {
			_ = r.world.Clock().Sleep(context.Background(), e.at-r.world.Now())
			s := r.servers[e.upstream]
			for i, l := range s.lanes {
				if l == nil {
					continue
				}
				if r.running++; r.running > mostRunning {
					tooMany = fmt.Errorf("%s:%d: more than %d calls wait at the same time, at %s: set a shorter max_wait, or replay one upstream with --upstream", rec.name, e.line, mostRunning, stamp(e.at))
					return
				}
				row := s.row(e.client)
				r.world.Go(func() { r.call(s, l, e, []*Flow{s.all.flows[i+1], row.flows[i+1]}) })
			}
		}
	})
	if err := r.world.RunUntil(begin + time.Second - 1); err != nil {
		return err
	}
	return tooMany
}

// drain waits for the calls in progress.
func (r *Replay) drain(ctx context.Context) error {
	for end := r.counts.to + lastWait; r.running > 0 && r.world.Now() < end && ctx.Err() == nil; {
		if err := r.world.RunUntil(r.world.Now() + time.Second); err != nil {
			return err
		}
	}
	return nil
}

// open creates the server of an upstream, with a lane for each configuration.
func (r *Replay) open(name string) (*server, error) {
	s := &server{clients: make(map[string]*Row), columns: len(r.Ways) + 1, billed: make(map[string]bool)}
	s.all = newRow("all", s.columns)
	for i := range r.Ways {
		var l *lane
		for j := range r.Ways[i].Targets {
			if t := &r.Ways[i].Targets[j]; t.Name == name {
				sum := fnv.New64a()
				_, _ = io.WriteString(sum, name)
				l = &lane{target: t, rand: rand.New(rand.NewPCG(r.Seed, sum.Sum64())), scopes: t.scopes()}
				var err error
				if l.upstream, err = weir.New(name, t.Policy, weir.Options{Clock: r.world.Clock(), Rand: l.rand}); err != nil {
					return nil, err
				}
				l.transport.Upstream = l.upstream
			}
		}
		s.lanes = append(s.lanes, l)
	}
	r.servers[name] = s
	return s, nil
}

// row returns the figures of a client.
func (s *server) row(client string) *Row {
	row := s.clients[client]
	if row == nil && len(s.clients) >= mostClients {
		client = otherClients
		row = s.clients[client]
	}
	if row == nil {
		row = newRow(client, s.columns)
		s.clients[client] = row
	}
	return row
}

// identify completes the keys of a call that a limit refused. It names the client by the first scope of the policy for
// which the call has a key: the scope of fair, then the other scopes.
func (s *server) identify(e *entry) {
	p := &s.lanes[0].target.Policy
	if key, ok := e.keys[""]; ok {
		e.keys = nil
		for i := range p.Limits {
			if of := &p.Limits[i]; of.Name == e.limit && of.Scope != "" {
				if e.keys = map[string]string{of.Scope: key}; scopes.Several(of.Scope) {
					e.keys, _ = scopes.Values(scopes.Names(of.Scope), key)
				}
			}
		}
	}
	for _, scope := range append([]string{p.Fair.By}, s.lanes[0].scopes...) {
		if value := e.keys[scope]; value != "" {
			e.client = scope + "=" + value
			return
		}
	}
}

// record adds an entry to the figures of the recording.
func (s *server) record(e *entry) {
	at := e.at.Truncate(time.Second)
	if n := len(s.seconds); n == 0 || s.seconds[n-1].at < at {
		old := 0
		for old < n && s.seconds[old].at < at-lastHint {
			old++
		}
		s.seconds = append(s.seconds[:0], append(s.seconds[old:], second{at: at})...)
	}
	now := &s.seconds[len(s.seconds)-1]
	now.hint = max(now.hint, e.hint)
	s.access = s.access || e.path != ""
	for unit, n := range e.usage {
		s.billed[unit] = s.billed[unit] || n > 0
	}
	s.refused = s.refused || e.refused
	for _, f := range []*Flow{s.all.flows[0], s.row(e.client).flows[0]} {
		if e.call {
			f.Calls++
		}
		if e.refused {
			f.Refused++
		}
		if !e.attempt {
			continue
		}
		if f.attempt(e.class, e.usage); answers(e.class) {
			f.Answered++
		}
	}
	switch {
	case !e.attempt:
	case e.class == outcome.Throttled:
		now.throttled++
	default:
		now.accepted++
		if e.class == outcome.Failed {
			now.failed++
		}
		switch {
		case e.class != outcome.OK || e.took == 0:
		case s.takes == 0:
			s.takes = e.took
		default:
			s.takes += (e.took - s.takes) / 16
		}
	}
}

// lastHint is how long a recorded hint and the last recorded failures are remembered.
const lastHint = time.Minute

// call makes a recorded call with a configuration.
func (r *Replay) call(s *server, l *lane, e *entry, flows []*Flow) {
	began, working, attempts := r.world.Now(), time.Duration(0), 0
	var class outcome.Class
	_, err := weir.Do(context.Background(), l.upstream, l.describe(e), func(ctx context.Context) (struct{}, error) {
		at := r.world.Now()
		attempts++
		o, takes := s.respond(l, e, at, attempts)
		err := r.world.Clock().Sleep(ctx, takes)
		working += r.world.Now() - at
		if err != nil {
			class = outcome.Failed // weir's timeout
		} else if class = o.Class; class != outcome.OK {
			err = &refused{o}
		}
		for _, f := range flows {
			f.attempt(class, e.usage)
		}
		return struct{}{}, err
	})
	r.running--
	_, refusal := errors.AsType[*weir.Refusal](err)
	for _, f := range flows {
		f.Calls++
		f.waits.add(r.world.Now() - began - working)
		switch {
		case answers(class):
			f.Answered++
		case refusal && attempts == 0:
			f.Refused++
		}
	}
}

// answers reports whether an attempt with a class ends its call with a response of the upstream.
func answers(c outcome.Class) bool { return c == outcome.OK || c == outcome.Rejected }

// describe returns the call of an entry.
func (l *lane) describe(e *entry) weir.Call {
	c := weir.Call{Operation: e.operation, Keys: make(map[string]string, len(l.scopes))}
	if e.path != "" {
		c = l.transport.CallOf(&http.Request{Method: e.method, URL: &url.URL{Opaque: e.path}})
		c.Keys = make(map[string]string, len(l.scopes))
		for _, scope := range l.scopes {
			c.Keys[scope] = e.client
		}
		return c
	}
	c.Safe = !slices.ContainsFunc(l.target.Policy.Operations, func(o weir.Operation) bool { return o.Name == e.operation && o.Safe == weir.No })
	maps.Copy(c.Keys, e.keys)
	if len(e.usage) > 0 {
		c.Cost, c.Estimated = e.usage, true
	}
	return c
}

// respond returns the response to an attempt of a call, and its time.
func (s *server) respond(l *lane, e *entry, now time.Duration, attempt int) (o outcome.Outcome, takes time.Duration) {
	if at := now.Truncate(time.Second); l.second != at {
		l.second, l.accepted = at, 0
	}
	i := len(s.seconds)
	for i > 0 && s.seconds[i-1].at > now {
		i--
	}
	if i > 0 && s.seconds[i-1].at == l.second && s.seconds[i-1].throttled > 0 && l.accepted >= s.seconds[i-1].accepted {
		o = outcome.Outcome{Class: outcome.Throttled, Code: "throttled", Undone: true}
		for ; i > 0 && o.Hint.After == 0; i-- {
			o.Hint.After = s.seconds[i-1].hint
		}
		o.Hint.Said = o.Hint.After > 0
		return o, 0
	}
	l.accepted++
	if takes = e.took; takes == 0 || e.class == outcome.Throttled {
		takes = cmp.Or(s.takes, l.target.Takes, usualTakes)
	}
	recorded := attempt == 1 && !e.refused && now < e.sent+time.Second && e.class != outcome.Throttled
	switch {
	case e.class == outcome.Rejected:
		return outcome.Outcome{Class: outcome.Rejected, Code: "rejected"}, takes
	case recorded && e.class == outcome.Failed, !recorded && s.fails(l.rand, i, now):
		return outcome.Outcome{Class: outcome.Failed, Code: "failed"}, takes
	}
	return outcome.Outcome{Class: outcome.OK, Usage: e.usage}, takes
}

// fails decides at random whether an attempt fails. The probability is the share of failures in the last recorded
// seconds before the index to.
func (s *server) fails(random *rand.Rand, to int, now time.Duration) bool {
	accepted, failed := 0, 0
	for _, one := range s.seconds[:to] {
		if one.at > now-recent {
			accepted, failed = accepted+one.accepted, failed+one.failed
		}
	}
	return failed > 0 && random.IntN(accepted) < failed
}

// result returns the result so far.
func (r *Replay) result(interrupted bool, rec *Recording) *Replayed {
	x := &r.counts
	x.ReadCounts, x.Unfinished, x.Interrupted = rec.counts, r.running, interrupted
	x.From, x.To = stamp(x.from), stamp(x.to)
	for i := range r.Ways[0].Targets {
		t := &r.Ways[0].Targets[i]
		s := r.servers[t.Name]
		if s == nil {
			continue
		}
		u := ReplayedUpstream{Upstream: t.Name, Assumed: s.assumed(t)}
		for j, l := range s.lanes {
			if l == nil {
				u.NotPlayed = append(u.NotPlayed, r.Ways[j].Name+" (has no upstream "+t.Name+")")
				continue
			}
			for _, name := range l.unplayed(s) {
				if len(r.Ways) > 1 {
					name = r.Ways[j].Name + ": " + name
				}
				u.NotPlayed = append(u.NotPlayed, name)
			}
		}
		ways := []string{"recorded"}
		for i := range r.Ways {
			ways = append(ways, r.Ways[i].Name)
		}
		u.Total = s.all.finish(ways, s)
		u.Clients = s.top(ways)
		x.Upstreams = append(x.Upstreams, u)
	}
	return x
}

// assumed returns what the recording does not specify.
func (s *server) assumed(t *Target) (all []string) {
	if s.takes == 0 {
		all = append(all, fmt.Sprintf("an attempt takes %v", cmp.Or(t.Takes, usualTakes)))
	}
	if s.access {
		all = append(all, "calls of the same second begin at random times in it")
		if scopes := t.scopes(); len(scopes) > 0 {
			all = append(all, "the user or address in the log is the key of "+strings.Join(scopes, ", "))
		}
	}
	if s.refused && len(t.scopes()) > 1 {
		all = append(all, "a refused call has only the key of the limit that refused it")
	}
	return append(all, "the upstream throttles and fails only at the recorded times", "callers wait for every response, and repeat no calls except the recorded ones", "one process makes all calls")
}

// unplayed returns the limits that the replay does not simulate or simulates only in part, with the reason.
func (l *lane) unplayed(s *server) (all []string) {
	for i := range l.target.Policy.Limits {
		of := &l.target.Policy.Limits[i]
		switch {
		case !requests(of) && !s.billed[of.Unit]:
			all = append(all, fmt.Sprintf("limits.%s (the recording has no %s)", of.Name, of.Unit))
		case of.Shape != limit.Calendar && of.Advertised != "":
			all = append(all, fmt.Sprintf("limits.%s (simulated with its rate only, because the recording has no rate limit headers)", of.Name))
		}
	}
	return all
}

// top returns the clients with the most recorded calls, followed by the sum of the clients beyond mostClients.
func (s *server) top(ways []string) (all []*Row) {
	const most = 5
	others := s.clients[otherClients]
	delete(s.clients, otherClients)
	all = slices.SortedFunc(maps.Values(s.clients), func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.flows[0].Calls, a.flows[0].Calls), cmp.Compare(a.Client, b.Client))
	})
	if len(all) == 1 && all[0].Client == "" {
		return nil
	}
	all = all[:min(most, len(all))]
	if others != nil {
		all = append(all, others)
	}
	for _, row := range all {
		row.finish(ways, s)
	}
	return all
}
