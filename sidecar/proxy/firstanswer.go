package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/veil"
)

// Keep configures how the first answers to calls with an Idempotency-Key are stored. The zero Keep stores none.
type Keep struct {
	On     bool
	Waits  bool // a second call waits for the first one, at most the upstream's MaxWait; otherwise it is refused
	Failed bool // answers with status 500 and above are stored as well
}

// Answering sets where first answers are stored. Without it, calls that need a stored answer are refused.
func (p *Proxy) Answering(a delivery.Answers) { p.answers.Store(&a) }

// idempotencyHeader marks an answer if weir does not know whether an earlier call under the same key was made.
const idempotencyHeader = "Weir-Idempotency"

// keyed reports whether the first answer to the request is stored.
func (r *Route) keyed(q *http.Request) bool {
	return r.Keep.On && q.Header["Idempotency-Key"] != nil && q.Header["Upgrade"] == nil
}

// once forwards a request if it is the first one under its key. Otherwise it replays the first answer.
func (p *Proxy) once(w http.ResponseWriter, r *http.Request, t *trip, how Keep) {
	a := p.answers.Load()
	if a == nil {
		refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, "responses cannot be stored: add deliveries to the file, and restart weir", nil)
		return
	}
	k, release, f := t.keyOf(r)
	if f != nil {
		f.RetryAfter(w.Header())
		f.Write(w)
		return
	}
	defer release()
	kept, err := p.begin(r.Context(), *a, k, t.longest(), t.patience(how))
	switch {
	case err != nil:
		keyRefused(w, err)
	case kept.State == delivery.UnderWay:
		f := keyUnderWay()
		f.RetryAfter(w.Header())
		f.Write(w)
	case kept.State == delivery.Answered:
		replay(w, kept.Answer)
	default:
		p.unlessDelivered(w, r, t, how, *a, k, kept.State)
	}
}

// unlessDelivered forwards a request that holds its key, unless a delivery has the same key.
func (p *Proxy) unlessDelivered(w http.ResponseWriter, r *http.Request, t *trip, how Keep, a delivery.Answers, k *delivery.Keyed, state delivery.KeptState) {
	known, err := p.delivers(r.Context(), t, k)
	if known || err != nil {
		finish := delivery.NotMade
		if state == delivery.Unknown {
			finish = delivery.Doubtful
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), recording)
		defer cancel()
		_ = a.Finish(ctx, k, finish, nil) // on error, the key expires
		if err != nil {
			keyRefused(w, err)
			return
		}
		otherWay("the Idempotency-Key belongs to a delivery: use another key, or send Prefer: respond-async").Write(w)
		return
	}
	if state == delivery.Unknown {
		w.Header().Set(idempotencyHeader, "unknown")
	}
	p.first(w, r, t, how, a, k)
}

// recording limits how long it takes to store the result of a call.
const recording = 5 * time.Second

// first forwards a request and stores its answer. It records the result in every case.
func (p *Proxy) first(w http.ResponseWriter, r *http.Request, t *trip, how Keep, a delivery.Answers, k *delivery.Keyed) {
	c := &copying{ResponseWriter: w}
	whole := false
	defer func() {
		finish, answer := t.finishOf(c, how, whole)
		if answer != nil {
			withoutSecrets(answer.Header, t.came.Header, t.to.Sends)
			if shown := t.to.masked(answer.Body); !bytes.Equal(shown, answer.Body) {
				answer.Body = shown
				delete(answer.Header, "Content-Length")
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), recording)
		defer cancel()
		_ = a.Finish(ctx, k, finish, answer) // on error the key expires, and the next call gets an unknown result
	}()
	p.send(c, r, t)
	whole = t.cut == nil && r.Context().Err() == nil
}

// finishOf returns how a call ended, with the answer to store.
func (t *trip) finishOf(c *copying, how Keep, whole bool) (delivery.Finish, *delivery.KeptAnswer) {
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, t.came.Method) && !httpx.Acts(t.came.Method, t.came.URL)
	o := &t.story.Outcome
	switch {
	case t.brought == 0 && (t.story.Attempts == 0 || o.Undone || o.Unsent), safe && (t.brought == 0 || !whole):
		return delivery.NotMade, nil
	case t.brought == 0 || !whole:
		return delivery.Doubtful, nil
	case slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests}, t.brought):
		return delivery.NotMade, nil
	case t.brought < 500 || how.Failed:
		return delivery.KeepFirst, c.answer()
	case safe:
		return delivery.NotMade, nil
	}
	return delivery.Doubtful, nil
}

// A keptBody is a body in memory. Reading it never waits and sets no deadline for the caller.
type keptBody struct{ *bytes.Reader }

// Close implements io.Closer.
func (keptBody) Close() error { return nil }

// keyOf returns the key of a request. It holds the request's body until release is called.
func (t *trip) keyOf(r *http.Request) (*delivery.Keyed, func(), *refuse.Facts) {
	bad := func(reason string) (*delivery.Keyed, func(), *refuse.Facts) {
		return nil, nil, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: "Idempotency-Key: " + reason, Details: map[string]any{"field": "Idempotency-Key", "reason": reason}, Final: true}
	}
	key, err := delivery.ParseKey(r.Header)
	if err != nil {
		return bad(err.Error())
	}
	body, release, f := t.bodyOf(r, delivery.MaxBody)
	if f != nil {
		f.Message = strings.Replace(f.Message, "a request for later delivery", "a request whose first response is stored (idempotency)", 1)
		return nil, nil, f
	}
	r.Body, r.ContentLength, r.TransferEncoding = keptBody{bytes.NewReader(body)}, int64(len(body)), nil
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	header := t.kept(r.Header) // omits what differs between two tries of one call, such as tokens and IDs
	if what := r.Header["X-Amz-Target"]; what != nil {
		header["X-Amz-Target"] = what
	}
	q := delivery.Request{Upstream: t.to.Name, Method: r.Method, Path: t.path, Query: r.URL.RawQuery, Header: header, Body: body}
	return &delivery.Keyed{Upstream: t.to.Name, Tenant: t.tenant(r), Key: key, Print: q.Fingerprint(), Call: rand.Text()}, release, nil
}

// tenant identifies the owner of a key: the caller's name and the credentials that it sends to the upstream. No caller
// gets another caller's answer.
func (t *trip) tenant(r *http.Request) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if veil.Secret(name) && !slices.Contains(t.who.Shown, name) && t.to.Sends[name] == nil {
			for _, v := range r.Header[name] {
				fmt.Fprintf(h, "%q %q ", name, bare(v))
			}
		}
	}
	return t.who.Name + "\x00" + hex.EncodeToString(h.Sum(nil)[:16])
}

// longest returns how long a call can take. After that its result is unknown.
func (t *trip) longest() time.Duration {
	policy := t.to.weir.Policy()
	long := time.Hour
	if policy.Timeouts.Call > 0 {
		long = policy.Timeouts.Call + max(policy.Timeouts.Idle, 0)
	}
	return long + 5*time.Second
}

func (t *trip) patience(how Keep) time.Duration {
	if !how.Waits {
		return 0
	}
	return max(0, t.to.weir.Policy().MaxWait)
}

// begin takes a key for at most longest. If another call holds the key, begin waits for patience, or until weir is
// about to stop.
func (p *Proxy) begin(ctx context.Context, a delivery.Answers, k *delivery.Keyed, longest, patience time.Duration) (kept delivery.Kept, err error) {
	end := time.Now().Add(patience)
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		k.Until = time.Now().Add(longest)
		asking, cancel := context.WithTimeout(ctx, accepting)
		kept, err = a.Begin(asking, k)
		cancel()
		if err != nil || kept.State != delivery.UnderWay || !time.Now().Add(wait).Before(end) {
			return kept, err
		}
		select {
		case <-time.After(wait):
		case <-p.leaving:
			return kept, nil
		case <-ctx.Done():
			return kept, context.Cause(ctx)
		}
	}
}

func keyRefused(w http.ResponseWriter, err error) {
	if errors.Is(err, delivery.ErrKeyReused) {
		keyReused().Write(w)
		return
	}
	w.Header().Set("Retry-After", "1")
	refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, "the request was not sent: whether its Idempotency-Key was used is unknown, because the deliveries' store does not answer", nil)
}

// replay sends the first answer again.
func replay(w http.ResponseWriter, a *delivery.KeptAnswer) {
	w.Header().Set("Idempotency-Replayed", "true")
	if a.Large {
		refusal(w, http.StatusConflict, "CONFLICT", fmt.Sprintf("the call was made, and its status was %d; its response was a stream or larger than %d bytes, and was not stored", a.Status, delivery.MaxKept),
			map[string]any{"field": "Idempotency-Key", "reason": "response not stored"})
		return
	}
	for name, v := range a.Header {
		if name != httpx.CorrelationHeader {
			w.Header()[name] = v
		}
	}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body)
}

// A copying writer copies its output, up to the size limit of stored answers.
type copying struct {
	http.ResponseWriter
	status int
	header http.Header
	body   []byte
	large  bool
}

func (c *copying) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *copying) WriteHeader(status int) {
	if status >= http.StatusOK && c.status == 0 {
		c.status, c.header = status, c.Header().Clone()
		c.large = isEvents(c.header)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *copying) Write(b []byte) (int, error) {
	if c.large = c.large || len(c.body)+len(b) > delivery.MaxKept; c.large {
		c.body = nil
	} else {
		c.body = append(c.body, b...)
	}
	return c.ResponseWriter.Write(b)
}

// answer returns the answer to store, without the headers that belong to this call only.
func (c *copying) answer() *delivery.KeptAnswer {
	for _, name := range []string{httpx.CorrelationHeader, "Connection", "Transfer-Encoding", "Trailer", "Keep-Alive", idempotencyHeader, AttemptsHeader} {
		delete(c.header, name)
	}
	return &delivery.KeptAnswer{Status: c.status, Header: c.header, Body: c.body, Large: c.large}
}
