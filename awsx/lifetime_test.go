package awsx

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// The caller's context may live forever. It keeps no reference to finished attempts.
func TestNothingIsKeptOfAnAttemptThatIsOver(t *testing.T) {
	for _, err := range []error{nil, errors.New("broken")} {
		l := begin(t.Context(), t.Context(), 1, &upstream{bounded: true})
		l.end(err)
		if l.Err() == nil {
			t.Errorf("an attempt that ended in %v, with nothing to be read, is still alive", err)
		}
	}
	l := begin(t.Context(), t.Context(), 1, &upstream{bounded: true})
	l.held = true
	if l.end(nil); l.Err() != nil {
		t.Error("an answer that is still to be read was cut off")
	}
}

// The end of an attempt ends its request, and the values of both contexts are available.
func TestALifeHasBothContexts(t *testing.T) {
	type key string
	caller := context.WithValue(t.Context(), key("caller"), 1)
	attempt, cancel := context.WithCancelCause(context.WithValue(t.Context(), key("attempt"), 2))
	l := begin(caller, attempt, 1, &upstream{bounded: true})
	if l.Value(key("caller")) != 1 || l.Value(key("attempt")) != 2 || l.Value(lifeKey{}) != l {
		t.Error("a value is missing")
	}
	why := errors.New("slow")
	cancel(why)
	<-l.Done()
	if context.Cause(l.Context) != why {
		t.Errorf("ended by %v", context.Cause(l.Context))
	}
}

// An object that breaks off while the program reads it is a failure, although the call has returned.
func TestBrokenObjectIsAFailure(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		part               string
		length             int
		reads, leaves      bool
		want               outcome.Class
	}{
		{"whole", "", "hello", "", 5, true, false, outcome.OK},
		{"cut", "", "abc", "", 1000, true, false, outcome.Failed},
		{"closed by the program", "", "abc", "", 3, false, false, outcome.OK},
		{"left by the program", "", "abc", "", 1000, true, true, outcome.Canceled},
		{"error event", "text/event-stream", "event: error\ndata: x\n\n", "", 22, true, false, outcome.Failed},
		{"part", "", "abc", "bytes 3-5/9", 3, true, false, outcome.OK},
		{"part that is too short", "", "abc", "bytes 0-99/900", 3, true, false, outcome.Failed},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(c.length))
			if c.part != "" {
				w.Header().Set("Content-Range", c.part)
				w.WriteHeader(http.StatusPartialContent)
			}
			if c.header != "" {
				w.Header().Set("Content-Type", c.header)
			}
			_, _ = io.WriteString(w, c.body)
			if c.leaves {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}))
		var ended []outcome.Class
		cfg := aws.Config{Region: "eu-west-1", BaseEndpoint: &s.URL, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
		New(Options{Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended = append(ended, e.Outcome.Class) }}}}).Attach(&cfg)
		ctx, cancel := context.WithCancel(t.Context())
		out, err := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }).GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		if err != nil {
			t.Fatal(err)
		}
		if len(ended) > 0 {
			t.Errorf("%s: reported before the body ended", c.name)
		}
		if c.leaves {
			_, _ = io.ReadFull(out.Body, make([]byte, 3))
			cancel()
		}
		if c.reads {
			_, _ = io.Copy(io.Discard, out.Body)
		}
		_ = out.Body.Close()
		if len(ended) != 1 || ended[0] != c.want {
			t.Errorf("%s: %v, want %v", c.name, ended, c.want)
		}
		cancel()
		s.Close()
	}
}
