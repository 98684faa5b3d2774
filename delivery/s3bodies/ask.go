package s3bodies

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// An ask is a repeatable request to S3.
type ask struct {
	method, key string
	query       url.Values
	header      map[string]string
	body        io.ReaderAt   // nil for none
	size        int64         // of the body of the request or the response
	hash        string        // of the body, in hexadecimal
	works       time.Duration // how long S3 may work before it responds
}

const (
	tries    = 3
	again    = 100 * time.Millisecond // the mean delay before the second try; each further one is four times as long
	answered = 30 * time.Second       // timeout of a response, without the time for a body
	slowest  = 256 << 10              // bytes per second
	noBody   = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// do sends a request, and retries it if another try may succeed, because all requests of this package are repeatable.
// use reads the response to a successful try within the timeout of that try.
func (b *Bodies) do(ctx context.Context, a *ask, use func(*http.Response) error) error {
	wait := again
	for try := 1; ; try++ {
		err := b.try(ctx, a, use)
		if err == nil || try == tries || ctx.Err() != nil || !passing(err) {
			return err
		}
		t := time.NewTimer(rand.N(wait) + wait/2)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
		wait *= 4
	}
}

// passing reports whether another try may succeed.
func passing(err error) bool {
	var local *localError
	if errors.As(err, &local) {
		return false
	}
	var e *answerError
	if !errors.As(err, &e) {
		return true // there was no response, or an incomplete one
	}
	return e.again || e.Status >= 500 || e.Status == http.StatusTooManyRequests ||
		slices.Contains([]string{"RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch"}, e.Code)
}

// A localError was caused by this machine or by the stored body, not by the request to S3.
type localError struct{ error }

func (e *localError) Unwrap() error { return e.error }

func (b *Bodies) try(ctx context.Context, a *ask, use func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, answered+a.works+time.Duration(a.size/slowest)*time.Second)
	defer cancel()
	r, err := b.request(ctx, a)
	if err != nil {
		return &localError{err}
	}
	plan, err := b.signer.Plan(r)
	if err == nil {
		err = plan.Sign(ctx, r)
	}
	if err != nil {
		return err
	}
	resp, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		e := failure(resp)
		e.again = plan.Refused(ctx, resp, cmp.Or(e.Code, strconv.Itoa(e.Status)))
		return e
	}
	return use(resp)
}

func (b *Bodies) request(ctx context.Context, a *ask) (*http.Request, error) {
	at := b.bucket.JoinPath(a.key)
	if a.key == "" {
		at = b.bucket
	}
	u := *at
	u.RawQuery = a.query.Encode()
	r, err := http.NewRequestWithContext(ctx, a.method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Amz-Content-Sha256", noBody)
	for name, v := range a.header {
		r.Header.Set(name, v)
	}
	if a.body == nil {
		return r, nil
	}
	r.Header.Set("X-Amz-Content-Sha256", a.hash)
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Body, r.ContentLength = io.NopCloser(io.NewSectionReader(a.body, 0, a.size)), a.size // a new reader, because the body of the previous try may still be in use
	return r, nil
}

// failure reads the error in a response of S3.
func failure(resp *http.Response) *answerError {
	said := struct{ Code, Message string }{}
	_ = xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said) // if this fails, the status is enough
	return &answerError{Status: resp.StatusCode, Code: said.Code, Message: fmt.Sprintf("%.200s", said.Message), Region: resp.Header.Get("X-Amz-Bucket-Region")}
}
