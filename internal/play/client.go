package play

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// Clients are the ways in which callers retry. sdk retries as the SDKs of model providers and clouds do: up to three
// attempts, with waits of 0.5 and 1 s, shortened by up to a quarter. backoff waits a random part of 0.5 and 1 s. none
// makes one attempt. All obey a response that specifies a wait or forbids a retry.
var Clients = []string{"sdk", "backoff", "none"}

// A Client calls as a program without weir does.
type Client struct {
	Clock    clock.Clock
	Rand     *rand.Rand // nil means the runtime's
	Kind     string     // one of Clients; "" means sdk
	Patience time.Duration
	Send     func(ctx context.Context, r Request) Reply
}

// A Request is what a caller asks for.
type Request struct {
	Tenant string
	Key    int // see Keys
}

// A Reply is the result of an attempt.
type Reply struct {
	OK    bool
	Final bool          // the response forbids a retry
	After time.Duration // the wait in the response, or 0
}

const attempts = 3

// Call makes a call and reports whether it was answered.
func (c *Client) Call(ctx context.Context, r Request) bool {
	wait := 500 * time.Millisecond
	for n := range attempts {
		a := c.attempt(ctx, r)
		if a.OK || a.Final || n == attempts-1 || c.Kind == "none" {
			return a.OK
		}
		pause := wait - c.chance(wait/4)
		if c.Kind == "backoff" {
			pause = c.chance(wait)
		}
		if a.After > 0 {
			pause = a.After
		}
		if wait *= 2; c.Clock.Sleep(ctx, pause) != nil {
			return false
		}
	}
	return false
}

func (c *Client) attempt(ctx context.Context, r Request) Reply {
	ctx, leave := c.Clock.WithTimeout(ctx, c.Patience, nil)
	defer leave()
	return c.Send(ctx, r)
}

func (c *Client) chance(below time.Duration) time.Duration {
	if c.Rand == nil {
		return rand.N(below)
	}
	return time.Duration(c.Rand.Int64N(int64(below)))
}
