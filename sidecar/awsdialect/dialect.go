// Package awsdialect implements the AWS protocols for the sidecar. It recognizes operations, signs each attempt with
// weir's own credentials, and writes weir's errors in the format of the AWS SDKs.
package awsdialect

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// Options describe an upstream.
type Options struct {
	resign.Options

	// PrefixDepth is the number of segments of an S3 key that form the value of the scope prefix. 0 means 1.
	PrefixDepth int

	// Shards is the number of prefixes over which S3 keys are spread, as by awsx.Shards. 0 leaves keys unchanged.
	Shards int
}

// A Dialect is the dialect of one upstream.
type Dialect struct {
	o        Options
	signer   *resign.Signer
	at, base string // host of the upstream, and path of its URL
	shards   *awsx.Shards
}

var _ httpx.Placed = (*Dialect)(nil)

// New returns a Dialect.
func New(o Options) (*Dialect, error) {
	if o.Shards > 0 && o.Service == "" {
		o.Service = "s3" // regardless of the request: an unsigned request does not name its service
	}
	s, err := resign.New(o.Options)
	if err != nil {
		return nil, err
	}
	if o.PrefixDepth <= 0 {
		o.PrefixDepth = 1
	}
	d := &Dialect{o: o, signer: s}
	if o.Shards > 0 {
		shards, err := awsx.NewShards(o.Shards)
		if err != nil {
			return nil, err
		}
		d.shards = &shards
	}
	return d, nil
}

// Scopes of limits that every AWS operation has.
const (
	Operation = "operation" // one value for each operation
	Region    = "region"
	Bucket    = "bucket" // of S3
	Prefix    = "prefix" // of S3: the bucket, and the beginning of the key
	Access    = "access" // read or write
)

// mostPeeked is the largest part of a body that is read before a request is admitted: of a form, to find its
// operation, and of an operation that is repeatable only with a token in the body.
const mostPeeked = 64 << 10

// Hear implements httpx.Dialect.
func (d *Dialect) Hear(r *http.Request, path string) (httpx.Exchange, *refuse.Facts) {
	x := &exchange{d: d, method: r.Method, path: path}
	dropToken(r)
	if err := x.recognize(r, path); err != nil {
		return x, failed(err)
	}
	return x, nil
}

// recognize finds out how a request is signed and which operation it is. It returns an error if the request cannot be
// forwarded.
func (x *exchange) recognize(r *http.Request, path string) (err error) {
	d := x.d
	x.plan, err = d.signer.Plan(r)
	ask := wire.Request{
		Service: d.o.Service, Method: r.Method, Host: d.host(r), Path: d.base + path, Query: r.URL.RawQuery, Header: r.Header,
	}
	if err == nil && x.plan.Service() != "" {
		ask.Service = x.plan.Service()
	}
	x.op = wire.Recognize(ask)
	if err != nil {
		return err
	}
	whole := true
	if x.op.ByForm() && r.Body != nil && r.Body != http.NoBody || small(r) && x.op.Name != "" && !x.op.Safe {
		ask.Form, whole, err = peek(r)
		x.op = wire.Recognize(ask)
	}
	if err != nil {
		return err
	}
	if x.op.Doubtful(ask.Path) && x.op.Bucket != "" {
		return &resign.RequestError{What: "the path has dot segments, and could be read as the path of another bucket"}
	}
	if what := x.op.Contradiction(ask, whole); what != "" {
		return &resign.RequestError{What: what}
	}
	return x.spread(r, ask.Path)
}

// At implements httpx.Placed.
func (d *Dialect) At(u *url.URL) httpx.Dialect {
	there := *d
	there.at, there.base = u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	return &there
}

// host returns the host that the request is sent to, which may contain a bucket.
func (d *Dialect) host(r *http.Request) string {
	if d.at == "" {
		return r.Host
	}
	return d.at
}

// dropToken removes a weir token that would be taken for a Bedrock key, with which a request is sent unchanged. It
// keeps an access key id, because the rest of that header is verified as a signature.
func dropToken(r *http.Request) {
	const field, signature = "Authorization", "AWS4-HMAC-SHA256"
	if httpx.HidesToken(r, field) && !strings.HasPrefix(r.Header.Get(field), signature) {
		r.Header.Del(field)
	}
}

// small reports whether a body may be read before the request is admitted. It returns false if the client waits for
// 100 Continue.
func small(r *http.Request) bool {
	return r.ContentLength > 0 && r.ContentLength <= mostPeeked && r.Header.Get("Expect") == ""
}

// peek reads the beginning of a body and restores it. whole means that it is the whole body. Compressed bodies are
// decompressed.
func peek(r *http.Request) (form []byte, whole bool, err error) {
	b, err := io.ReadAll(io.LimitReader(r.Body, mostPeeked+1))
	if err != nil {
		return nil, false, httpx.BrokenBody(err)
	}
	if whole = len(b) <= mostPeeked; !whole || !rewound(r.Body) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(b), r.Body), r.Body}
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		if plain, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
			b, _ = io.ReadAll(io.LimitReader(plain, mostPeeked)) // as far as possible
			whole = false
		}
	}
	return b, whole, nil
}

// rewound rewinds a body that is in memory.
func rewound(body io.Reader) bool {
	m, ok := body.(interface {
		Len() int
		io.Seeker
	})
	if !ok {
		return false
	}
	_, err := m.Seek(0, io.SeekStart)
	return err == nil
}

// failed returns the response to a request that could not be signed.
func failed(err error) *refuse.Facts {
	var own *refuse.Facts
	var credentials *resign.CredentialsError
	var request *resign.RequestError
	var framing *resign.FramingError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &credentials):
		return &refuse.Facts{Status: http.StatusInternalServerError, Code: refuse.InternalError, Message: err.Error(), Final: true}
	case errors.As(err, &request), errors.As(err, &framing):
		return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: err.Error(), Final: true}
	}
	return nil
}

// An exchange is one request.
type exchange struct {
	d      *Dialect
	plan   *resign.Plan
	op     wire.Op
	method string
	path   string // path to send, without the upstream's path
}

// Describe implements httpx.Exchange.
func (x *exchange) Describe(c *weir.Call) {
	c.Operation, c.Safe, c.Polls = x.op.Name, x.op.Safe, x.op.Polls
	if x.op.Name == "" {
		c.Operation = weir.DefaultOperation
	}
	if c.Keys == nil {
		c.Keys = make(map[string]string, 3)
	}
	set(c.Keys, Operation, c.Operation)
	if region := x.plan.Region(); region != "" {
		set(c.Keys, Region, region)
	}
	set(c.Keys, Access, access(x.op.Write))
	if x.op.Bucket != "" {
		set(c.Keys, Bucket, x.op.Bucket)
		set(c.Keys, Prefix, x.op.Bucket+"/"+wire.Prefix(x.op.Key, x.d.o.PrefixDepth))
	}
}

func access(write bool) string {
	if write {
		return "write"
	}
	return "read"
}

// set sets a key, unless the configuration has another source for it.
func set(keys map[string]string, scope, value string) {
	if _, ok := keys[scope]; !ok {
		keys[scope] = value
	}
}

// Declared reports whether the operation is known.
func (x *exchange) Declared() bool { return x.op.Name != "" }

// AsIs reports whether the request is sent unchanged, without weir's credentials.
func (x *exchange) AsIs() bool { return x.plan != nil && x.plan.AsIs() }

// Attempt implements httpx.Exchange.
func (x *exchange) Attempt(r *http.Request) error {
	if err := x.plan.Sign(r.Context(), r); err != nil {
		if f := failed(err); f != nil {
			return f
		}
		return err
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &telling{r.Body}
	}
	return nil
}

// telling is a body whose read errors are attributed to the caller.
type telling struct{ io.ReadCloser }

// InMemory reports whether the body is in memory, so that reading it does not block.
func (t *telling) InMemory() bool {
	m, ok := t.ReadCloser.(interface{ InMemory() bool })
	return ok && m.InMemory()
}

func (t *telling) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		if f := failed(err); f != nil {
			err = f
		}
	}
	return n, err
}

// Answered implements httpx.Exchange.
func (x *exchange) Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	if o.Class == outcome.Rejected && x.plan.Refused(resp.Request.Context(), resp, o.Code) {
		// The upstream did nothing, and did not fail.
		return outcome.Outcome{Class: outcome.Failed, Code: o.Code, Undone: true, Own: true, Hint: outcome.Hint{Advice: outcome.Again, Said: true}}
	}
	return o
}

// Refuse implements httpx.Exchange.
func (x *exchange) Refuse(w http.ResponseWriter, f *refuse.Facts) {
	e := wire.ErrorOf(f, w.Header().Get(httpx.CorrelationHeader))
	e.Write(w, x.op, x.method)
}
