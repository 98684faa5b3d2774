package classify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// readJSON collects the error in a JSON text, by the paths and keys of the Table. The body may be truncated anywhere.
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
	maxPath  = 5   // keys on the path to a value
	maxDepth = 32  // of objects and arrays: no error is deeper, and the work stays linear
	maxKeys  = 256 // bytes of the path
	maxPaths = 64  // of codes
)

// jsonFacts is the information in a JSON text.
type jsonFacts struct {
	base time.Time

	codes    [maxPaths]string // by the index of their path in order of precedence
	messages [len(messagePaths)]string
	numbers  [len(numberPaths)]string

	wait    int  // the index of the wait with the highest precedence, or -1
	asks    bool // a field or a header asks to repeat the call later
	waitFor time.Duration
	lead    int // the index of the phrase before a wait in a message, or -1
	leadFor time.Duration
	headers http.Header // received and passed on by a gateway

	spoken  bool // a message is about a refusal because of the rate
	daily   bool // the same, because of a limit per day or longer
	perDay  bool // google.rpc.QuotaFailure or YouTube names a limit per day
	meta    bool // Meta's error
	own     ownFields
	errors  bool // there are errors, as in GraphQL
	data    bool // there is a result as well
	says429 bool // a number is the status 429
	inner   bool // the text is in a string of another text
}

// messagePaths are the paths of the error's message. The first that exists counts.
var messagePaths = [...]string{"error.message", "response.error.message", "message", "Message"}

// numberPaths are the paths of numbers that are codes or costs.
var numberPaths = [...]string{"http", "code", "error.code", requestedCost, availableCost, restoredCost}

// Indexes of numberPaths.
const (
	codeNumber  = 1
	errorNumber = 2
)

const (
	requestedCost = "extensions.cost.requestedQueryCost"
	availableCost = "extensions.cost.throttleStatus.currentlyAvailable"
	restoredCost  = "extensions.cost.throttleStatus.restoreRate"
)

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

// waitAt reads a wait by its path, its key, or its key with the enclosing object's.
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
		f.asks = f.asks || jsonWaits[i].Means == Wait && wait > 0
	}
}

// waits keeps the wait with the highest precedence, and of two with the same the longer.
func (f *jsonFacts) waits(i int, wait time.Duration) {
	switch {
	case f.wait < 0, i < f.wait:
		f.wait, f.waitFor = i, wait
	case i == f.wait:
		f.waitFor = max(f.waitFor, wait)
	}
}

// readsInner reads a string that is itself JSON, as gateways pass on upstream errors.
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
	f.own.read(path, v)
}

func (f *jsonFacts) text(path []byte, v string) {
	f.own.read(path, v)
	code := v
	switch string(path) {
	case "type":
		code = problem(v)
	case "error":
		code = krakenCode(v)
	}
	if i, ok := codePaths[string(path)]; ok && code != "" && (i < anyCodes || decides(code)) {
		f.code(i, path, code)
	}
	switch string(path) {
	case "error.fbtrace_id":
		f.meta = true
	case "error.type":
		f.meta = f.meta || v == "OAuthException"
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
	if strings.IndexByte(v, ' ') < 0 && !strings.Contains(v, "_WAIT_") { // Telegram: FLOOD_WAIT_4
		return
	}
	v = lower(v)
	said, daily := saysThrottled(v)
	f.spoken, f.daily = f.spoken || said, f.daily || daily
	if wait, lead, ok := messageWait(v, f.base); ok && (f.lead < 0 || lead < f.lead || lead == f.lead && wait > f.leadFor) {
		f.lead, f.leadFor = lead, wait
	}
}

// problem returns the code in a type. Of a URI, it is the last part if that is a throttle, as in
// urn:ietf:params:acme:error:rateLimited. RFC 9457 names the types of problems with URIs. Their quotas need not be per day.
func problem(uri string) string {
	i := strings.LastIndexAny(uri, "/:#")
	if i < 0 {
		return uri
	}
	if v, ok := codeVerdict(uri[i+1:]); ok && v.class == outcome.Throttled && !v.quota {
		return uri[i+1:]
	}
	return ""
}

// code keeps the first code of a path, or the first that determines the class.
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

// header reads a header that a gateway passes on in its body.
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

// cost returns the time until Shopify has enough points for a query.
func (f *jsonFacts) cost() (time.Duration, bool) {
	requested, okR := number(f.numbers[3])
	available, okA := number(f.numbers[4])
	rate, okN := number(f.numbers[5])
	if !okR || !okA || !okN || rate <= 0 {
		return 0, false
	}
	return scale((requested-available)/rate, time.Second), true
}

// ntfyCode returns ntfy's code: a number that only counts with ntfy's "http" next to it. metaCode returns Meta's.
func (f *jsonFacts) ntfyCode() string {
	if f.numbers[0] == "" {
		return ""
	}
	return f.numbers[codeNumber]
}

func (f *jsonFacts) metaCode() string {
	if n := f.numbers[errorNumber]; f.meta && n != "" {
		return "OAuthException:" + n
	}
	return ""
}

// take adds the facts to the detail.
func (d *detail) take(f *jsonFacts) {
	d.add(f.metaCode())
	own := f.own.code()
	d.add(own)
	for i, code := range f.codes {
		if i == 1 { // after __type
			d.add(f.ntfyCode())
		}
		d.add(code)
	}
	d.message = cmp.Or(f.messages[:]...)
	d.perDay = f.perDay || slices.Contains(d.codes, "dailyLimitExceeded") || slices.Contains(d.codes, "dailyLimitExceededUnreg")
	d.says429 = f.says429
	d.spoken, d.daily, d.refused = f.spoken, f.daily, (f.errors || own != "") && !f.data
	if wait, ok := f.cost(); ok {
		f.waits(jsonPaths["extensions.cost.throttleStatus"], wait)
	}
	if len(f.headers) > 0 {
		wait, ok := headerWait(f.headers, f.base)
		f.asks = f.asks || wait > 0
		if !ok {
			levels, full := levelsOf(f.headers, f.base, true)
			wait, ok = exhausted(levels, full)
			f.asks = f.asks || slices.ContainsFunc(levels[:full], isExhausted)
		}
		if ok {
			f.waits(jsonPaths["error.metadata.headers.X-RateLimit-Reset"], wait)
		}
	}
	d.field, d.hasField, d.asks = f.waitFor, f.wait >= 0, f.asks
	d.words, d.hasWords = f.leadFor, f.lead >= 0
}

// A walker tracks the position in the tokens of a JSON text. Arrays do not appear in paths, so Gemini's errors are read with and
// without the enclosing array.
type walker struct {
	open  []level // the objects and arrays that enclose the next token
	facts *jsonFacts
	path  []byte
}

type level struct {
	object bool
	key    string // of an object, after its key was read; otherwise empty
	keyed  bool
}

func (w *walker) step(t json.Token) {
	top := w.top()
	if s, isString := t.(string); isString && top != nil && top.object && !top.keyed {
		top.key, top.keyed = s, true
		return
	}
	path, key := w.where()
	if root, _, _ := bytes.Cut(path, []byte(".")); t != nil && t != json.Delim('}') && t != json.Delim(']') {
		switch string(root) {
		case "errors", "error", "error_code", "error_message":
			w.facts.errors = true
		case "Response":
			w.facts.errors = w.facts.errors || bytes.HasPrefix(path, []byte("Response.Error."))
		case "retCode", "retMsg", "retExtInfo", "time", "servedby", "docref", "warnings", "curtimestamp", "requestid", // Bybit, MediaWiki
			"", "code", "error_description", "error_type", "extensions", "message", "msg", "ok", "request_id", "requestId", "response_metadata",
			"retry_after", "status", "status_code", "statusCode", "success", "timestamp", "type":
		default: // data, or another result
			_, opens := t.(json.Delim)
			w.facts.data = w.facts.data || !opens || string(root) == "data"
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
	case bool:
		if !t {
			w.facts.own.read(path, "false")
		}
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

// valueDone prepares the enclosing object for its next key.
func (w *walker) valueDone() {
	if top := w.top(); top != nil {
		top.keyed = false
	}
}

// where returns the path of the next value, and its last key. The path is empty if it is too deep.
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
