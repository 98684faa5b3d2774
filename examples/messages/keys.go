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
	within  = 5 * time.Second  // timeout of a fetch, including the second attempt
	between = 10 * time.Second // minimum average interval between fetches
)

// keysPolicy returns the policy for fetching keys. It has a separate timeout and breaker because the issuer is a different
// upstream than ntfy. A token with an unknown key causes a fetch, and anyone can send such tokens. Therefore fetches have a
// limit, and do not wait for it.
func keysPolicy() weir.Policy {
	return weir.Policy{
		Timeouts: weir.Timeouts{Connect: within, TLS: within, Headers: within, Attempt: within, Call: within, Body: within},
		Retry:    retry.Config{Attempts: 2, Base: 100 * time.Millisecond, Cap: time.Second},
		Breaker:  breaker.Config{Consecutive: 3, FirstOpen: between, Open: time.Minute},
		Limits:   []limit.Limit{{Name: "reads", Rate: bucket.Rate{Amount: 6, Per: 6 * between, Burst: 6}}},
		MaxWait:  -1,
	}
}

// errUnreadable reports that the key of a token is unknown and that the keys cannot be fetched.
var errUnreadable = errors.New("the keys of tokens cannot be read")

// Keys are the keys at a URL. They are fetched at the start, every hour, and when a token has an unknown key. Simultaneous
// requests with the same unknown key share a fetch.
type Keys struct {
	jwkset.Storage // the last fetched keys; a failed fetch keeps them
	reads          singleflight.Group
}

// NewKeys fetches keys until ctx ends. A nil base is the default transport.
func NewKeys(ctx context.Context, url string, log *slog.Logger, base http.RoundTripper) (*Keys, error) {
	upstream, err := weir.New("jwks", keysPolicy(), weir.Options{})
	if err != nil {
		return nil, err
	}
	read, err := jwkset.NewStorageFromHTTP(url, jwkset.HTTPClientStorageOptions{
		Client: &http.Client{
			Transport:     &httpx.Transport{Upstream: upstream, Base: base},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect could lead from https to any address
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
	// The policy limits the fetches.
	all, err := jwkset.NewHTTPClient(jwkset.HTTPClientOptions{HTTPURLs: map[string]jwkset.Storage{url: read}, RefreshUnknownKID: rate.NewLimiter(rate.Inf, 0)})
	if err != nil {
		return nil, err
	}
	return &Keys{Storage: all}, nil
}

// reading is the context key of a pointer to a fetch's error. The storage reports a missing key without the reason.
type reading struct{}

// KeyRead returns the key with an ID. A canceled ctx does not end a fetch that other requests share.
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
