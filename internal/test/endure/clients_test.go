package endure

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A client makes a call with any number of attempts.
type client func(context.Context) error

var errBad = errors.New("the call failed")

// post makes an attempt.
func post(ctx context.Context, by http.RoundTripper) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.example/v1/thing", strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	resp, err := by.RoundTrip(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	return resp, err
}

func fine(resp *http.Response, err error) error {
	if err == nil && resp.StatusCode != http.StatusOK {
		return errBad
	}
	return err
}

// once makes one attempt.
func once(p *provider, _ uint64) client {
	return func(ctx context.Context) error { return fine(post(ctx, p)) }
}

// hasty makes one attempt with a timeout of 10s, as the preset messaging does.
func hasty(p *provider, _ uint64) client {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return fine(post(ctx, p))
	}
}

// An sdk is the AWS SDK's retryer in the SDK's loop of attempts.
type sdk struct {
	p         *provider
	retryer   *retry.Standard
	earnsEach bool // each successful attempt earns a token, not only the first
}

func (c *sdk) call(ctx context.Context) error {
	release := func(error) error { return nil }
	for n := 1; ; n++ {
		first, _ := c.retryer.GetAttemptToken(ctx) // never fails
		err := c.attempt(ctx)
		_ = release(err)
		if c.earnsEach || n == 1 {
			_ = first(err)
		}
		if err == nil || !c.retryer.IsErrorRetryable(err) || n >= c.retryer.MaxAttempts() {
			return err
		}
		var spent error
		if release, spent = c.retryer.GetRetryToken(ctx, err); spent != nil {
			return err
		}
		d, _ := c.retryer.RetryDelay(n, err)
		if left := sleep(ctx, d); left != nil {
			return left
		}
	}
}

func (c *sdk) attempt(ctx context.Context) error {
	resp, err := post(ctx, c.p)
	if err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	inner := errBad
	if code := resp.Header.Get(codeHeader); code != "" {
		inner = &smithy.GenericAPIError{Code: code}
	}
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: resp}, Err: inner}}
}

// stainless behaves like the SDKs of OpenAI and Anthropic: two retries, after 0.5 and 1 s, shortened by up to a quarter, or
// after the wait in the response, up to a minute.
func stainless(p *provider, seed uint64) client {
	r := chance(seed)
	return func(ctx context.Context) error {
		for n := 0; ; n++ {
			resp, err := post(ctx, p)
			if err = fine(resp, err); err == nil || n == 2 {
				return err
			}
			d := min(500*time.Millisecond<<n, 8*time.Second)
			d -= time.Duration(r() * float64(d) / 4)
			if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && s <= 60 {
				d = time.Duration(s) * time.Second
			}
			if err := sleep(ctx, d); err != nil {
				return err
			}
		}
	}
}

// genai behaves like Google's SDK with retry options: five attempts, after 1, 2, 4 and 8 s plus up to a second. It ignores
// waits in responses. Without options it makes one attempt.
func genai(p *provider, seed uint64) client {
	r := chance(seed)
	return func(ctx context.Context) error {
		for n := 0; ; n++ {
			err := fine(post(ctx, p))
			if err == nil || n == 4 {
				return err
			}
			if err := sleep(ctx, time.Second<<n+time.Duration(r()*float64(time.Second))); err != nil {
				return err
			}
		}
	}
}

// chance returns random numbers from 0 to 1. Goroutines of a bubble can share it.
func chance(seed uint64) func() float64 {
	source := make(chan float64, 1)
	r := rand.New(rand.NewPCG(seed, 2))
	source <- r.Float64()
	return func() float64 {
		x := <-source
		source <- r.Float64()
		return x
	}
}
