package play

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/sim"
)

// Limits of a recording.
const (
	longestLine = 64 << 10
	longestTook = 24 * time.Hour
	mostNames   = 1000    // of upstreams that are not played
	window      = 1 << 16 // records that are sorted at a time, and call IDs that are remembered
	late        = 2 * time.Second
	firstTried  = 1000 // lines after which a file without any record is refused
)

// An entry is a line of a log: an attempt, a call that weir refused, or a hint of the upstream.
type entry struct {
	line      int64
	at        time.Duration // when it happened, in virtual time
	sent      time.Duration // when the first attempt of the call was sent
	waited    time.Duration // how long the call waited before sent
	upstream  string
	operation string // "" for an access log
	method    string // of an access log, with the raw path that is sent
	path      string
	client    string            // keys, or a hash of the client in an access log
	keys      map[string]string // nil for an access log
	limit     string            // the limit that refused the call
	class     outcome.Class
	took      time.Duration // 0 if unknown
	hint      time.Duration
	usage     map[string]int64

	call, attempt bool // the entry begins a call, is an attempt, or both
	refused       bool // weir refused the call
}

// A Recording reads a log in the order in which calls began: weir's log with log: attempts, or an access log in the
// combined format. Both may be compressed by gzip. A Recording is not safe for concurrent use.
type Recording struct {
	// Route returns the upstream of a request in an access log, and the path that is sent to it.
	Route func(host, path string) (upstream, rest string, ok bool)

	// Progress is called after every 100,000 lines, with the number of lines read.
	Progress func(lines int64)

	name   string
	in     *bufio.Reader
	random *rand.Rand // places calls within their second
	sorted entries
	now    time.Duration // of the latest entry that was returned
	ended  bool
	found  bool // a line is in a known format
	ids    idSet
	counts ReadCounts
}

// ReadCounts counts the lines of a recording.
type ReadCounts struct {
	Lines        int64            `json:"lines"`
	Skipped      int64            `json:"skipped"`       // lines that are in no known format, or describe no request
	FirstSkipped int64            `json:"first_skipped"` // number of the first skipped line
	Late         int64            `json:"late"`          // attempts that began before calls already played
	Suppressed   int64            `json:"suppressed"`    // refusals and lines that weir did not write
	Unknown      map[string]int64 `json:"unknown"`       // attempts at upstreams that are not played, by name
}

// NewRecording returns a recording. The name is for errors. If the log contains times in whole seconds, the seed
// determines when in its second each call begins.
func NewRecording(name string, in io.Reader, seed uint64) (*Recording, error) {
	r := &Recording{name: name, in: bufio.NewReaderSize(in, longestLine), random: rand.New(rand.NewPCG(seed, 0x6c6f67)), ids: newIDSet()}
	r.counts.Unknown = make(map[string]int64)
	switch head, err := r.in.Peek(2); {
	case len(head) == 0 && errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: is empty: want weir's log with log: attempts, or an access log", name)
	case len(head) == 0:
		return nil, fmt.Errorf("%s: %w", name, err)
	case bytes.Equal(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r.in)
		if err != nil {
			return nil, fmt.Errorf("%s: decompress: %w", name, err)
		}
		r.in = bufio.NewReaderSize(z, longestLine)
	}
	return r, nil
}

// next returns the next entry, or io.EOF.
func (r *Recording) next() (*entry, error) {
	for !r.ended && len(r.sorted) < window {
		if err := r.read(); err != nil {
			return nil, err
		}
	}
	if len(r.sorted) == 0 {
		return nil, io.EOF
	}
	e := heap.Pop(&r.sorted).(*entry)
	r.now = e.at
	return e, nil
}

// read reads a line.
func (r *Recording) read() error {
	const step = 100_000
	text, err := r.in.ReadSlice('\n')
	long := false
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		_, err = r.in.ReadSlice('\n')
	}
	switch {
	case errors.Is(err, io.EOF):
		r.ended = true
	case err != nil:
		return fmt.Errorf("%s:%d: %w", r.name, r.counts.Lines+1, err)
	}
	if r.ended && len(text) == 0 {
		return nil
	}
	if r.counts.Lines++; r.Progress != nil && r.counts.Lines%step == 0 {
		r.Progress(r.counts.Lines)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	var e *entry
	known := false
	switch {
	case long:
	case text[0] == '{':
		e, known = r.weirLine(text)
	default:
		e, known = r.accessLine(string(text))
	}
	r.found = r.found || known
	switch {
	case !known:
		r.counts.Skipped++
		r.counts.FirstSkipped = cmp.Or(r.counts.FirstSkipped, r.counts.Lines)
		if !r.found && r.counts.Lines >= firstTried {
			return r.unknownFormat()
		}
	case e != nil && e.waited > 0:
		call := *e
		call.at, call.attempt, e.call = e.at-e.waited, false, false
		if err := r.push(&call); err != nil {
			return err
		}
		return r.push(e)
	case e != nil:
		return r.push(e)
	}
	return nil
}

func (r *Recording) unknownFormat() error {
	return fmt.Errorf("%s:%d: unknown format: want weir's log as JSON, or an access log in the combined format", r.name, r.counts.FirstSkipped)
}

// push adds an entry. An attempt may have begun before calls already played, because attempts are logged when they end.
func (r *Recording) push(e *entry) error {
	e.line = r.counts.Lines
	if e.at < r.now {
		if e.at+e.waited+e.took < r.now-late {
			return fmt.Errorf("%s:%d: %s is earlier than a line more than %d lines before it: sort the file by time", r.name, e.line, stamp(e.at), window)
		}
		e.at = r.now
		r.counts.Late++
	}
	heap.Push(&r.sorted, e)
	return nil
}

// beginning is the wall clock at the beginning of virtual time. In virtual time, each call happens at its recorded
// time of day, so that windows of calendar limits begin as they did.
var beginning = new(sim.World).Clock().Wall(0)

// stamp formats an instant.
func stamp(at time.Duration) string { return beginning.Add(at).UTC().Format("2006-01-02 15:04:05") }

// instant converts a wall clock to virtual time.
func instant(t time.Time) (at time.Duration, ok bool) {
	const firstYear, lastYear = 2000, 2200
	if y := t.Year(); y < firstYear || y > lastYear {
		return 0, false
	}
	return t.Sub(beginning), true
}

// unplayed counts an attempt at an upstream that is not played.
func (r *Recording) unplayed(upstream string) {
	const others = "others"
	if r.counts.Unknown[upstream] == 0 && len(r.counts.Unknown) >= mostNames {
		upstream = others
	}
	r.counts.Unknown[upstream]++
}

// A weirLine is a line of weir's log, with the fields that a replay uses.
type weirLine struct {
	Time       time.Time        `json:"time"`
	Msg        string           `json:"msg"`
	Upstream   string           `json:"upstream"`
	Operation  string           `json:"operation"`
	Attempt    int              `json:"attempt"`
	Class      outcome.Class    `json:"class"`
	Took       float64          `json:"took"`
	Body       float64          `json:"body"`
	Waited     float64          `json:"waited"`
	After      float64          `json:"after"`
	Usage      map[string]int64 `json:"usage"`
	Key        string           `json:"key"`
	Limit      string           `json:"limit"`
	ID         string           `json:"id"`
	Suppressed int64            `json:"suppressed"`
	Dropped    int64            `json:"dropped"`
}

// weirLine parses a weirLine. e is nil if the line describes no attempt.
func (r *Recording) weirLine(text []byte) (e *entry, ok bool) {
	var l weirLine
	if json.Unmarshal(text, &l) != nil || l.Msg == "" {
		return nil, false
	}
	at, ok := instant(l.Time)
	for _, s := range []float64{l.Took, l.Body, l.Waited, l.After} {
		ok = ok && s >= 0 && s <= longestTook.Seconds()
	}
	for _, n := range l.Usage {
		ok = ok && n >= 0 && n < 1<<40
	}
	if !ok {
		return nil, false
	}
	e = &entry{upstream: l.Upstream, operation: l.Operation, class: l.Class, usage: l.Usage, client: l.Key, keys: keysOf(l.Key)}
	switch l.Msg {
	case "attempt":
		e.took = seconds(l.Took) + seconds(l.Body)
		e.at, e.attempt, e.call = at-e.took, true, l.Attempt <= 1
		e.sent = e.at
		if e.call {
			e.waited = seconds(l.Waited)
		}
		r.ids.add(l.ID)
	case "refused":
		r.counts.Suppressed += max(0, l.Suppressed)
		if e.at, e.call = at-seconds(l.Waited), r.ids.add(l.ID); !e.call {
			return nil, true // a retry of a call that was sent before
		}
		e.refused = true
		if e.limit = l.Limit; len(e.keys) == 0 && l.Key != "" && l.Limit != "" {
			e.keys = map[string]string{"": l.Key} // the key of the limit, whose scope the configuration specifies
		}
	case "throttled":
		if e.at, e.hint = at, seconds(l.After); e.hint == 0 {
			return nil, true
		}
	case "log lines dropped":
		r.counts.Suppressed += max(1, l.Dropped)
		return nil, true
	default:
		return nil, true
	}
	return e, l.Upstream != "" && e.at-e.waited >= 0
}

// keysOf parses keys in the form scope=value, separated by commas.
func keysOf(text string) map[string]string {
	var keys map[string]string
	for one := range strings.SplitSeq(text, ",") {
		if scope, value, ok := strings.Cut(one, "="); ok && scope != "" {
			if keys == nil {
				keys = make(map[string]string)
			}
			keys[scope] = value
		}
	}
	return keys
}

// accessLine parses a line in the combined format, which may begin with a host. e is nil if no upstream has the path.
func (r *Recording) accessLine(text string) (e *entry, ok bool) {
	head, rest, ok := strings.Cut(text, " [")
	when, rest, closed := strings.Cut(rest, `] "`)
	request, rest, quoted := cutQuoted(rest)
	if !ok || !closed || !quoted {
		return nil, false
	}
	who := strings.Fields(head)
	host := ""
	if len(who) == 4 {
		host, who = who[0], who[1:]
	}
	t, err := time.Parse("02/Jan/2006:15:04:05 -0700", when)
	if err != nil || len(who) != 3 {
		return nil, false
	}
	code, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	status, err := strconv.Atoi(code)
	method, target, _ := strings.Cut(request, " ")
	target, _, _ = strings.Cut(target, " ")
	if u, err := url.Parse(target); err == nil && u.IsAbs() {
		host, target = u.Host, cmp.Or(u.EscapedPath(), "/")
	}
	path, _, _ := strings.Cut(target, "?")
	at, ok := instant(t)
	if err != nil || !ok || !strings.HasPrefix(path, "/") {
		return nil, false
	}
	upstream, raw, ok := r.Route(host, path)
	if !ok {
		first, _, _ := strings.Cut(path[1:], "/")
		r.unplayed(host + "/" + first)
		return nil, true
	}
	client := who[2]
	if client == "-" {
		client = who[0]
	}
	sum := sha256.Sum256([]byte(client))
	at += time.Duration(r.random.Int64N(int64(time.Second)))
	return &entry{
		at: at, sent: at, upstream: upstream, method: method, path: raw,
		client: hex.EncodeToString(sum[:5]), class: classOf(status), call: true, attempt: true,
	}, true
}

// cutQuoted returns the text before and after the next quotation mark that is not escaped by a backslash.
func cutQuoted(text string) (quoted, rest string, ok bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i], text[i+1:], true
		}
	}
	return "", "", false
}

// classOf returns the class of a response with a status. 499 is nginx's status for a caller that disconnected.
func classOf(status int) outcome.Class {
	if status == 499 {
		return outcome.Canceled
	}
	if status < 400 {
		return outcome.OK
	}
	return classify.HTTP(classify.Response{Status: status}).Class
}

// entries is a heap in the order of time and lines.
type entries []*entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].line < e[j].line
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(*entry)) }
func (e *entries) Pop() any {
	n := len(*e) - 1
	x := (*e)[n]
	(*e)[n] = nil
	*e = (*e)[:n]
	return x
}

// An idSet remembers the latest call IDs.
type idSet struct {
	all  map[string]bool
	ring []string
	next int
}

func newIDSet() idSet { return idSet{all: make(map[string]bool), ring: make([]string, window)} }

// add adds an ID and reports whether it is new. An unknown ID ("") is always new.
func (s *idSet) add(id string) bool {
	switch {
	case id == "":
		return true
	case s.all[id]:
		return false
	}
	delete(s.all, s.ring[s.next])
	s.all[id], s.ring[s.next] = true, id
	s.next = (s.next + 1) % len(s.ring)
	return true
}
