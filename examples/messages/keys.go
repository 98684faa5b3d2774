package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/MicahParks/jwkset"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

const (
	within  = 5 * time.Second  // keys are read, a second attempt included
	between = 10 * time.Second // two times that they are read, on the average, whatever tokens name
)

// keysPolicy is how keys are read: with a time limit and a breaker of their own, as whoever issues tokens is another
// upstream than ntfy. A token that names a key that is not known has them read, which anybody could send many of:
// hence the limit, beyond which nobody waits.
func keysPolicy() weir.Policy {
	return weir.Policy{
		Timeouts: weir.Timeouts{Connect: within, TLS: within, Headers: within, Attempt: within, Call: within, Body: within},
		Retry:    retry.Config{Attempts: 2, Base: 100 * time.Millisecond, Cap: time.Second},
		Breaker:  breaker.Config{Consecutive: 3, FirstOpen: between, Open: time.Minute},
		Limits:   []limit.Limit{{Name: "reads", Rate: bucket.Rate{Amount: 6, Per: 6 * between, Burst: 6}}},
		MaxWait:  -1,
	}
}

// errUnreadable means that the key of a token is not known, and that keys cannot be read.
var errUnreadable = errors.New("the keys of tokens cannot be read")

// Keys are those of a URL. They are read at the start, every hour, and when a token names one that is not known, for
// which all wait that name it.
type Keys struct {
	jwkset.Storage // those that were read last; they stay while no more can be read
	reads          singleflight.Group
}

// NewKeys reads keys until ctx ends. base sends; nil means as the system does.
func NewKeys(ctx context.Context, url string, log *slog.Logger, base http.RoundTripper) (*Keys, error) {
	upstream, err := weir.New("jwks", keysPolicy(), weir.Options{})
	if err != nil {
		return nil, err
	}
	read, err := jwkset.NewStorageFromHTTP(url, jwkset.HTTPClientStorageOptions{
		Client: &http.Client{
			Transport:     &httpx.Transport{Upstream: upstream, Base: base},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // it could lead from https to anywhere
		},
		Ctx: ctx, HTTPTimeout: 2 * within, RefreshInterval: time.Hour, NoErrorReturnFirstHTTPReq: true,
		RefreshErrorHandler: func(ctx context.Context, err error) {
			log.Warn("keys of tokens were not read", "error", err.Error())
			if failed, ok := ctx.Value(reading{}).(*error); ok {
				*failed = err
			}
		},
	})
	if err != nil {
		return nil, err
	}
	// How often is for the policy to say.
	all, err := jwkset.NewHTTPClient(jwkset.HTTPClientOptions{HTTPURLs: map[string]jwkset.Storage{url: read}, RefreshUnknownKID: rate.NewLimiter(rate.Inf, 0)})
	if err != nil {
		return nil, err
	}
	return &Keys{Storage: all}, nil
}

// reading is where, in a context, the error of a reading goes: the store tells of a key that is not there, not why.
type reading struct{}

// KeyRead is the key by an id. A caller that leaves ends no reading that others wait for.
func (k *Keys) KeyRead(ctx context.Context, id string) (jwkset.JWK, error) {
	key, err, _ := k.reads.Do(id, func() (any, error) {
		var failed error
		key, err := k.Storage.KeyRead(context.WithValue(context.WithoutCancel(ctx), reading{}, &failed), id)
		if err != nil && failed != nil {
			err = errors.Join(errUnreadable, failed)
		}
		return key, err
	})
	return key.(jwkset.JWK), err
}
