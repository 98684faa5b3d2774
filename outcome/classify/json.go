package classify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// readJSON collects what the error in a JSON text says, by the paths and keys of the Table. The body may be cut
// short anywhere: what came before the cut counts.
func (d *detail) readJSON(body []byte, base time.Time) {
	f := jsonFacts{base: base, wait: -1, lead: -1}
	f.read(body)
	d.take(&f)
}

func (f *jsonFacts) read(body []byte) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	dec.UseNumber()
	w := walker{facts: f}
	for len(w.open) <= maxDepth {
		t, err := dec.Token()
		if err != nil {
			break
		}
		w.step(t)
	}
}

const (
	maxPath  = 5   // keys to the deepest value that is looked at
	maxDepth = 32  // of objects and arrays: no error is as deep, and work stays linear
	maxKeys  = 256 // bytes of the path
	maxPaths = 64  // of codes
)

// jsonFacts are what a JSON text says.
type jsonFacts struct {
	base time.Time

	codes    [maxPaths]string // by the place of their path in the order of belief
	messages [len(messagePaths)]string
	numbers  [len(numberPaths)]string

	wait    int // the place of the wait that is believed most, or -1
	waitFor time.Duration
	lead    int // the place of the words before a wait in a message, or -1
	leadFor time.Duration
	headers http.Header // that a gateway has got, and passes on

	spoken  bool // a message says that the call was refused for rate
	perDay  bool // google.rpc.QuotaFailure names a limit per day, or YouTube does
	meta    bool // it is Meta's
	errors  bool // there are errors, as in GraphQL
	data    bool // there is a result, too
	says429 bool // a number says that the status is 429
	inner   bool // the text stands in a string of another
}

// messagePaths are those whose message is that of the error, the first that is there.
var messagePaths = [...]string{"error.message", "response.error.message", "message", "Message"}

// numberPaths are those whose numbers are codes or costs.
var numberPaths = [...]string{"http", "code", "error.code", requestedCost, availableCost, restoredCost}

const (
	requestedCost = "extensions.cost.requestedQueryCost"
	availableCost = "extensions.cost.throttleStatus.currentlyAvailable"
	restoredCost  = "extensions.cost.throttleStatus.restoreRate"
)

// value takes in a string or a number.
func (f *jsonFacts) value(path []byte, key, v string, isNumber bool) {
	parent, _ := bytes.CutSuffix(path, []byte(key))
	switch {
	case bytes.HasSuffix(parent, []byte("eaders.")):
		f.header(key, v)
		return
	case isNumber:
		f.number(path, v)
	case f.readsInner(v):
		return
	default:
		f.text(path, v)
	}
	around := bytes.TrimSuffix(parent, []byte("."))
	f.waitAt(path, string(around[bytes.LastIndexByte(around, '.')+1:]), key, v)
}

// waitAt takes in a wait by its path, its key, or its key with that of the object around it.
func (f *jsonFacts) waitAt(path []byte, around, key, v string) {
	i, ok := jsonPaths[string(path)]
	if !ok {
		i, ok = jsonKeys[fold(key)]
	}
	if !ok && around != "" {
		i, ok = jsonKeys[fold(around)+fold(key)]
	}
	if !ok {
		return
	}
	if wait, ok := waitOf(v, jsonWaits[i].Unit, f.base); ok {
		f.waits(i, wait)
	}
}

// waits keeps the wait that is believed most, and of two that are believed alike the longer.
func (f *jsonFacts) waits(i int, wait time.Duration) {
	switch {
	case f.wait < 0, i < f.wait:
		f.wait, f.waitFor = i, wait
	case i == f.wait:
		f.waitFor = max(f.waitFor, wait)
	}
}

// readsInner reads a string that is itself JSON, as gateways pass on the errors of others.
func (f *jsonFacts) readsInner(v string) bool {
	if f.inner || len(v) < 2 || v[0] != '{' && v[0] != '[' {
		return false
	}
	f.inner = true
	f.read([]byte(v))
	f.inner = false
	return true
}

func (f *jsonFacts) number(path []byte, v string) {
	if _, ok := codePaths[string(path)]; ok && v == "429" {
		f.says429 = true
	}
	for i, p := range numberPaths {
		if p == string(path) && f.numbers[i] == "" {
			f.numbers[i] = v
		}
	}
}

func (f *jsonFacts) text(path []byte, v string) {
	if i, ok := codePaths[string(path)]; ok && v != "" && (i < anyCodes || decides(v)) {
		f.code(i, path, v)
	}
	switch string(path) {
	case "error.fbtrace_id":
		f.meta = true
	case "error.details.violations.quotaId", "error.details.metadata.quota_limit":
		f.perDay = f.perDay || strings.Contains(v, "PerDay")
	case "error.errors.domain":
		f.perDay = f.perDay || v == "youtube.quota"
	}
	for i, p := range messagePaths {
		if p == string(path) && f.messages[i] == "" {
			f.messages[i] = v
		}
	}
	if strings.IndexByte(v, ' ') < 0 {
		return
	}
	v = lower(v)
	f.spoken = f.spoken || saysThrottled(v)
	if wait, lead, ok := messageWait(v, f.base); ok && (f.lead < 0 || lead < f.lead || lead == f.lead && wait > f.leadFor) {
		f.lead, f.leadFor = lead, wait
	}
}

// code keeps the first code of a path, or the first that decides.
func (f *jsonFacts) code(i int, path []byte, v string) {
	if i >= len(f.codes) || f.codes[i] != "" && (decides(f.codes[i]) || !decides(v)) {
		return
	}
	switch string(path) {
	case "__type", "code", "Code": // AWS
		v = bareAWSCode(v)
	}
	f.codes[i] = v
}

// header takes in a header that a gateway passes on in its body.
func (f *jsonFacts) header(name, v string) {
	const most = 16
	if len(f.headers) >= most {
		return
	}
	if f.headers == nil {
		f.headers = make(http.Header)
	}
	f.headers.Add(name, v)
}

// cost is how long it takes until Shopify has what a query costs.
func (f *jsonFacts) cost() (time.Duration, bool) {
	requested, okR := number(f.numbers[3])
	available, okA := number(f.numbers[4])
	rate, okN := number(f.numbers[5])
	if !okR || !okA || !okN || rate <= 0 {
		return 0, false
	}
	return scale((requested-available)/rate, time.Second), true
}

// ntfyCode is a number, which only ntfy's "http" beside it makes a code. metaCode is one of Meta's.
func (f *jsonFacts) ntfyCode() string {
	if f.numbers[0] == "" {
		return ""
	}
	return f.numbers[1]
}

func (f *jsonFacts) metaCode() string {
	if n := f.numbers[2]; f.meta && n != "" {
		return "OAuthException:" + n
	}
	return ""
}

// take adds what was found to the detail.
func (d *detail) take(f *jsonFacts) {
	d.add(f.metaCode())
	for i, code := range f.codes {
		if i == 1 { // behind __type
			d.add(f.ntfyCode())
		}
		d.add(code)
	}
	d.message = cmp.Or(f.messages[:]...)
	d.perDay = f.perDay || slices.Contains(d.codes, "dailyLimitExceeded")
	d.says429 = f.says429
	d.spoken, d.refused = f.spoken, f.errors && !f.data
	if wait, ok := f.cost(); ok {
		f.waits(jsonPaths["extensions.cost.throttleStatus"], wait)
	}
	if len(f.headers) > 0 {
		wait, ok := headerWait(f.headers, f.base)
		if !ok {
			wait, ok = exhausted(levelsOf(f.headers, f.base, true))
		}
		if ok {
			f.waits(jsonPaths["error.metadata.headers.X-RateLimit-Reset"], wait)
		}
	}
	d.field, d.hasField = f.waitFor, f.wait >= 0
	d.words, d.hasWords = f.leadFor, f.lead >= 0
}

// A walker knows where in a JSON text a stream of tokens has got to. Arrays
// leave no trace in paths, so Gemini's errors read the same with and without the
// array around them.
type walker struct {
	open  []level // the objects and arrays around the next token
	facts *jsonFacts
	path  []byte
}

type level struct {
	object bool
	key    string // of an object, once its key has been seen; else empty
	keyed  bool
}

// step takes the next token.
func (w *walker) step(t json.Token) {
	top := w.top()
	if s, isString := t.(string); isString && top != nil && top.object && !top.keyed {
		top.key, top.keyed = s, true
		return
	}
	path, key := w.where()
	if root, _, _ := bytes.Cut(path, []byte(".")); t != nil && t != json.Delim('}') && t != json.Delim(']') {
		switch string(root) {
		case "data":
			w.facts.data = true
		case "errors", "error", "error_code":
			w.facts.errors = true
		}
	}
	switch t := t.(type) {
	case json.Delim:
		w.delim(t)
		return
	case string:
		w.facts.value(path, key, t, false)
	case json.Number:
		w.facts.value(path, key, t.String(), true)
	}
	w.valueDone()
}

func (w *walker) top() *level {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

func (w *walker) delim(d json.Delim) {
	switch d {
	case '{', '[':
		w.open = append(w.open, level{object: d == '{'})
	default:
		w.open = w.open[:len(w.open)-1]
		w.valueDone()
	}
}

// valueDone makes the object around a finished value ready for its next key.
func (w *walker) valueDone() {
	if top := w.top(); top != nil {
		top.keyed = false
	}
}

// where returns the path of the next value, and its last key. The path is empty if it is too deep to matter.
func (w *walker) where() (path []byte, key string) {
	b, depth := w.path[:0], 0
	for i := range w.open {
		if l := &w.open[i]; l.object {
			if depth++; depth > 1 {
				b = append(b, '.')
			}
			b, key = append(b, l.key...), l.key
		}
	}
	if w.path = b; depth > maxPath || len(b) > maxKeys {
		return nil, key
	}
	return b, key
}
