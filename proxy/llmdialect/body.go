package llmdialect

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/proxy"
)

// read reads and parses the body, and puts it back. One that is packed is sent on unpacked,
// or nobody would count what it asks for; but in another way than gzip it is not looked
// into, and costs what its size suggests.
func (x *exchange) read(r *http.Request) *proxy.Failure {
	if err := unpack(r); err != nil {
		return unread(err, x.d.o.MaxBody)
	}
	if r.Header.Get("Content-Encoding") != "" {
		x.estimate = x.d.o.Tokens.Estimate(x.route.Family, x.route.Model, tokens.Prompt{Bytes: max(0, r.ContentLength)}, 0)
		x.guessed = true
		return nil
	}
	body, err := readAll(r, x.d.o.MaxBody)
	if err != nil {
		return unread(err, x.d.o.MaxBody)
	}
	if x.request, err = x.route.Parse(body); err != nil {
		return &proxy.Failure{Status: http.StatusBadRequest, Code: proxy.ValidationError, Message: err.Error(), Final: true}
	}
	x.route = x.request.Route
	if b := billOf(r.Context()); b != nil && b.of.request != nil && b.of.request.AddedUsage {
		x.request.AddedUsage = true // it asks already, but not for its caller
	}
	body = x.request.AskUsage()
	r.Body = &readBody{bytes.NewReader(body), r.Body}
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	return nil
}

// unpack puts what a body holds that is packed with gzip in its place.
func unpack(r *http.Request) error {
	if e := r.Header["Content-Encoding"]; len(e) != 1 || !strings.EqualFold(e[0], "gzip") && !strings.EqualFold(e[0], "x-gzip") {
		return nil
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{plain, r.Body}
	r.ContentLength = -1
	r.Header.Del("Content-Encoding")
	r.Header.Del("X-Amz-Content-Sha256") // of what was packed
	return nil
}

// A readBody is a body that has been read.
type readBody struct {
	*bytes.Reader
	io.Closer
}

func readAll(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	room := int64(bytes.MinRead)
	if r.ContentLength > 0 {
		room += min(r.ContentLength, 1<<20) // what is announced may never come
	}
	b := bytes.NewBuffer(make([]byte, 0, room))
	if _, err := b.ReadFrom(io.LimitReader(r.Body, most+1)); err != nil {
		return nil, err
	}
	if int64(b.Len()) > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	return b.Bytes(), nil
}

func unread(err error, most int64) *proxy.Failure {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &proxy.Failure{Status: http.StatusRequestEntityTooLarge, Code: proxy.ValidationError, Final: true,
			Message: "the body is larger than the " + size(most) + " that are taken here"}
	}
	return proxy.BrokenBody(err)
}
