package proxy

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	memory "github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Headers of stored answers, the same as for language models.
const (
	cacheHeader    = "X-Weir-Cache"
	degradedHeader = "X-Weir-Degraded"
)

// Values of Replayed.Cause. The other values are classes of outcomes.
const (
	causeRefused = "refused"
	causeCut     = "cut"
)

const (
	// maxStale is the size limit of stored bodies, in bytes.
	maxStale = 1 << 20
	// streamTime is how long a body of unknown length may take. A slower body is a stream, and is neither stored nor
	// held back.
	streamTime = time.Second
	// maxVary is how many fields Vary may name.
	maxVary = 16
)

// Replayed describes a failed call that got a stored answer.
type Replayed struct {
	Upstream, ID string
	Cause        string // refused, cut, or the class of the outcome
	Age          time.Duration
}

// A keeper finds and stores good answers to one request (RFC 5861, stale-if-error).
type keeper struct {
	t     *trip
	began time.Time
	key   cache.Key
	own   bool // the key contains a credential or a caller's name
	reads bool // GET or HEAD
}

// earlier returns nil if answers to the request are neither stored nor replaced.
func (t *trip) earlier() *keeper {
	if t.to.Answers == nil || !t.counts || t.at != nil || t.exchange != nil {
		return nil
	}
	k := &keeper{t: t, began: time.Now(), reads: (t.came.Method == http.MethodGet || t.came.Method == http.MethodHead) && !httpx.Acts(t.came.Method, t.came.URL)}
	k.key = cache.Key{Route: t.to.Name, Hash: sha256.Sum256([]byte(t.to.URL.String() + t.path))}
	if !k.reads {
		return k
	}
	if t.came.ContentLength != 0 || slices.ContainsFunc(partial, func(name string) bool { return t.came.Header[name] != nil }) {
		return nil
	}
	k.own = t.who.Name != "" || credentialOf(t.came, t.who, t.path) != ""
	k.key.Tenant = t.tenant(t.came)
	k.key.Hash = sha256.Sum256(k.question())
	return k
}

// partial lists the fields of requests for a part of an answer, of conditional requests, and of requests with another
// method than stated.
var partial = []string{"Range", "If-Range", "If-Match", "If-Unmodified-Since", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// negotiated lists fields that select a form of an answer, whether or not Vary names them.
var negotiated = []string{"Accept", "Accept-Encoding", "Accept-Language"}

// question returns what determines the answer, except for the credential and Vary.
func (k *keeper) question() []byte {
	t := k.t
	b := fmt.Appendf(nil, "%q %q %q %q", t.came.Method, t.to.URL, t.path, t.came.URL.RawQuery)
	scopes := t.to.values(t.came)
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		b = fmt.Appendf(b, " %q=%q", scope, scopes[scope])
	}
	for _, name := range slices.Sorted(maps.Keys(t.came.Header)) {
		if slices.Contains(negotiated, name) || t.to.Callers != nil && t.to.Callers.Consumes(name) {
			b = fmt.Appendf(b, " %q:%q", name, t.came.Header[name])
		}
	}
	return b
}

// writtenKey is the key of the record that a path was written to.
func (k *keeper) writtenKey() cache.Key {
	t := k.t
	return cache.Key{Tenant: "written", Route: t.to.Name, Hash: sha256.Sum256([]byte(t.to.URL.String() + t.path))}
}

// variant returns the key for the request's values of the fields that Vary names.
func (k *keeper) variant(vary string) cache.Key {
	b := slices.Clone(k.key.Hash[:])
	for name := range strings.SplitSeq(vary, ",") {
		b = fmt.Appendf(b, " %q:%q", name, k.t.came.Header[name])
	}
	key := k.key
	key.Hash = sha256.Sum256(b)
	return key
}

// find returns the last good answer and its age.
func (k *keeper) find() (e cache.Entry, age time.Duration, ok bool) {
	if !k.reads || !cache.Usable(k.t.came.Header) || k.t.came.Header["Cache-Control"] == nil && k.t.came.Header["Pragma"] != nil {
		return e, 0, false
	}
	now, answers := time.Now(), k.t.to.Answers
	e, state, age := answers.Peek(now, k.key)
	if vary := e.Meta["vary"]; state != cache.Miss && vary != "" {
		e, state, age = answers.Peek(now, k.variant(vary))
	}
	if state == cache.Miss {
		return e, 0, false
	}
	if most, said := ageOf(directives(k.t.came.Header), "max-age"); said && age > most {
		return e, 0, false
	}
	if written, state, _ := answers.Peek(now, k.writtenKey()); state != cache.Miss && !e.Stored.After(written.Stored) {
		return e, 0, false
	}
	return e, age, true
}

// failed sends a stored answer to a request that got no response. It reports false if there is none.
func (k *keeper) failed(w http.ResponseWriter, in *http.Request, err error) bool {
	if k == nil {
		return false
	}
	k.wrote()
	cause := outcome.Failed.String()
	refusal, refused := errors.AsType[*weir.Refusal](err)
	_, own := errors.AsType[*refuse.Facts](err)
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case in.Context().Err() != nil && !impatient(in.Context()), own, large:
		return false
	case slices.ContainsFunc([]error{httpx.ErrNoRoom, httpx.ErrRequestBody, httpx.ErrInvalidRequest, weir.ErrTooMuch}, func(e error) bool { return errors.Is(err, e) }):
		return false
	case refused:
		k.t.story.GaveUp = refusal
		cause = causeRefused
	}
	e, age, ok := k.find()
	if ok {
		k.replay(w, in, e, age, cause)
	}
	return ok
}

// instead sends a stored answer if resp is a failure or breaks off. If it reports false, the caller must pass on resp.
func (k *keeper) instead(w http.ResponseWriter, in *http.Request, resp *http.Response) bool {
	if k == nil {
		return false
	}
	if !k.reads {
		k.wrote()
		return false
	}
	class := k.t.story.Outcome.Class
	if class == outcome.Throttled || class == outcome.Failed || resp.StatusCode >= http.StatusInternalServerError {
		if class != outcome.Throttled {
			class = outcome.Failed
		}
		e, age, ok := k.find()
		if ok {
			_ = resp.Body.Close() // ends the call before its record is read
			k.replay(w, in, e, age, class.String())
		}
		return ok
	}
	if e, age, ok := k.find(); ok && !isEvents(resp.Header) && k.cut(in, resp) {
		k.replay(w, in, e, age, causeCut)
		return true
	}
	k.keep(resp)
	return false
}

// cut reads ahead in a body and reports whether it broke off. A stream is passed on.
func (k *keeper) cut(in *http.Request, resp *http.Response) bool {
	known := resp.ContentLength >= 0
	if resp.ContentLength > maxStale {
		return false
	}
	var room reserved
	defer room.free()
	var read bytes.Buffer
	buf := pool.Get().(*[bufferSize]byte)
	defer pool.Put(buf)
	for begin := time.Now(); read.Len() <= maxStale && (known || time.Since(begin) < streamTime) && room.grow(read.Len()+len(buf)); {
		n, err := resp.Body.Read(buf[:])
		read.Write(buf[:n])
		switch {
		case err == nil:
			continue
		case err != io.EOF && in.Context().Err() == nil:
			_ = resp.Body.Close()
			return true
		}
		resp.Body = &readAhead{io.MultiReader(&read, failing{err}), resp.Body}
		return false
	}
	resp.Body = &readAhead{io.MultiReader(&read, resp.Body), resp.Body}
	return false
}

// A readAhead is a body whose beginning has been read.
type readAhead struct {
	io.Reader
	io.Closer
}

// A failing reader only returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// replay answers with a stored answer.
func (k *keeper) replay(w http.ResponseWriter, in *http.Request, e cache.Entry, age time.Duration, cause string) {
	t := k.t
	resp := &http.Response{StatusCode: e.Status, Header: make(http.Header, len(e.Header)+6), ProtoMajor: 1, ContentLength: int64(len(e.Body)), Body: io.NopCloser(bytes.NewReader(e.Body))}
	maps.Copy(resp.Header, e.Header)
	resp.Header.Set("Age", strconv.FormatInt(int64(age/time.Second), 10))
	resp.Header.Set(cacheHeader, cache.Old.String())
	resp.Header.Set(degradedHeader, "true")
	t.points(resp.Header)
	resp.Header[httpx.CorrelationHeader] = []string{t.id}
	if t.story.Attempts != 1 {
		resp.Header.Set(AttemptsHeader, strconv.Itoa(t.story.Attempts))
	}
	if t.story.GaveUp != nil {
		resp.Header.Set(GaveUpHeader, reason(t.story.GaveUp))
	}
	t.said = e.Status
	t.trace.Note(trace.Text(trace.AttrCache, cache.Old.String()), trace.Bool(trace.AttrDegraded, true))
	if t.to.Replayed != nil {
		t.to.Replayed(Replayed{Upstream: t.to.Name, ID: t.id, Cause: cause, Age: age})
	}
	_ = bring(w, in, resp) // an error comes from the caller's connection
}

// keep stores a good answer once it is complete. Any other response that is not a failure removes the stored answer.
func (k *keeper) keep(resp *http.Response) {
	answers := k.t.to.Answers
	if resp.StatusCode == http.StatusNotModified {
		k.confirm(resp)
		return
	}
	ttl, ok := k.keepable(resp)
	if !ok {
		answers.Forget(k.key)
		return
	}
	header := resp.Header.Clone()
	classify.RemoveWaits(header)
	withoutSecrets(header, k.t.came.Header, k.t.to.Sends)
	for _, name := range []string{"Age", "Set-Cookie", httpx.CorrelationHeader} {
		delete(header, name)
	}
	age, _ := ageOf(map[string]string{"age": resp.Header.Get("Age")}, "age")
	e := cache.Entry{Status: resp.StatusCode, Header: header, Stored: k.began.Add(-age), TTL: ttl}
	head := time.Now()
	resp.Body = &keeping{ReadCloser: resp.Body, known: resp.ContentLength, whole: func(body []byte) {
		if resp.ContentLength < 0 && time.Since(head) > streamTime {
			return
		}
		e.Body = body
		k.put(e, varied(header))
	}}
}

// put stores an answer under the request's values of the fields in vary.
func (k *keeper) put(e cache.Entry, vary string) {
	now, answers := time.Now(), k.t.to.Answers
	if vary == "" {
		answers.Put(now, k.key, e)
		return
	}
	answers.Put(now, k.key, cache.Entry{Stored: e.Stored, TTL: e.TTL, Meta: map[string]string{"vary": vary}})
	answers.Put(now, k.variant(vary), e)
}

// confirm renews a stored answer that the upstream calls current.
func (k *keeper) confirm(resp *http.Response) {
	e, _, ok := k.find()
	if tag := resp.Header.Get("Etag"); ok && tag != "" && tag == http.Header(e.Header).Get("Etag") {
		e.Stored = k.began
		k.put(e, varied(e.Header))
	}
}

// wrote records that the path may have changed, so that older answers are no longer used (RFC 9111, 4.4).
func (k *keeper) wrote() {
	if k.reads || k.t.story.Attempts == 0 || slices.Contains([]string{http.MethodOptions, http.MethodTrace}, k.t.came.Method) {
		return
	}
	k.t.to.Answers.Put(time.Now(), k.writtenKey(), cache.Entry{})
}

// keepable reports whether an answer may be stored, and for how long; 0 means StaleIfError.
//
// A key with a caller's credential makes weir a private cache for that caller (RFC 9111, 3.5). Without one it is a
// shared cache. Then an answer to a credential of weir is stored only if it is public.
func (k *keeper) keepable(resp *http.Response) (ttl time.Duration, ok bool) {
	say := directives(resp.Header)
	says := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, is := say[name]; return is })
	}
	t := k.t
	switch {
	case cache.Storable(cache.Answer{Request: t.came.Header, Header: resp.Header, Status: resp.StatusCode, Complete: true, Failed: t.story.Outcome.Class != outcome.OK}) != nil,
		says("no-store", "no-cache", "must-revalidate"),
		!k.own && says("private", "proxy-revalidate", "s-maxage"),
		!k.own && resp.Header["Set-Cookie"] != nil,
		!k.own && (len(t.to.Sends) > 0 || t.to.Credentials) && !says("public"),
		varied(resp.Header) == "*", resp.ContentLength > maxStale,
		resp.Header["Content-Range"] != nil, isEvents(resp.Header), len(resp.Trailer) > 0:
		return 0, false
	}
	if after, said := ageOf(say, "stale-if-error"); said {
		fresh, _ := ageOf(say, "max-age")
		ttl = min(t.to.StaleIfError, fresh+after)
		return ttl, ttl > 0
	}
	return 0, true
}

// varied returns the field names in Vary, sorted, with commas between; "*" if no request matches.
func varied(h http.Header) string {
	var names []string
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxVary || slices.Contains(names, "*") {
		return "*"
	}
	return strings.Join(names, ",")
}

// directives returns the directives of Cache-Control in lower case, with their values.
func directives(h http.Header) map[string]string {
	all := make(map[string]string)
	for _, line := range h["Cache-Control"] {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(textproto.TrimString(part), "=")
			all[strings.ToLower(textproto.TrimString(name))] = strings.Trim(textproto.TrimString(value), `"`)
		}
	}
	return all
}

// ageOf returns the value of a directive. A value that is not a number counts as 0.
func ageOf(all map[string]string, name string) (d time.Duration, said bool) {
	v, said := all[name]
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 {
		n = 0
	}
	return time.Duration(n) * time.Second, said
}

// A keeping body copies the bytes that are read from it, and passes the copy to whole at its end.
type keeping struct {
	io.ReadCloser
	known int64 // its length; negative if unknown
	whole func([]byte)
	copy  []byte
	room  reserved
	over  bool // nothing more is copied
}

func (k *keeping) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if k.over {
		return n, err
	}
	if size := len(k.copy) + n; size > maxStale || !k.room.grow(size) {
		k.end()
		return n, err
	}
	k.copy = append(k.copy, p[:n]...)
	if err != nil {
		if err == io.EOF && (k.known < 0 || k.known == int64(len(k.copy)) || len(k.copy) == 0) {
			k.whole(bytes.Clone(k.copy)) // the grown slice has unused capacity
		}
		k.end()
	}
	return n, err
}

// Close implements io.Closer.
func (k *keeping) Close() error {
	k.end()
	return k.ReadCloser.Close()
}

func (k *keeping) end() {
	k.over, k.copy = true, nil
	k.room.free()
}

// A reserved is memory for a copy of a body.
type reserved struct{ n []int64 }

// grow reserves memory for size bytes in total. It reports false if the memory is needed elsewhere.
func (r *reserved) grow(size int) bool {
	var has int64
	for _, n := range r.n {
		has += n
	}
	if int64(size) <= has {
		return true
	}
	more := max(bufferSize, has) // doubles the reservation
	if !memory.Bodies.Spare(more) {
		return false
	}
	r.n = append(r.n, more)
	return r.grow(size)
}

func (r *reserved) free() {
	for _, n := range r.n {
		memory.Bodies.Give(n)
	}
	r.n = nil
}
