package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A client runs scripts on a server, through rueidis. It is safe for concurrent use.
//
// A call that is alone has a connection to itself, which its own goroutine writes and reads. Calls of
// several callers go over one connection for each node, as many at once as there are; two goroutines of the client
// write and read it, which costs a caller that is alone more than the decision itself.
type client struct {
	rueidis func(ctx context.Context) (rueidis.Client, error)
	close   func()
	dialer  *dialer
	sends   sync.Pool
}

func newClient(made func(context.Context) (rueidis.Client, error), close func(), d *dialer) *client {
	return &client{rueidis: made, close: close, dialer: d, sends: sync.Pool{New: func() any { return new(sending) }}}
}

// run runs a script with the keys, which share a hash tag, and the arguments, and appends
// the answer, which is always a string, to reply. It asks by the script's hash and
// sends the text when the server does not know it. It never sends a command again
// after an error of the connection: the first may have been carried out. It returns
// by ctx's deadline.
//
// Keys and args are not used once run has returned without an error; after an error the
// store leaves them alone, since they may still be on their way.
func (c *client) run(ctx context.Context, s *script, keys, args [][]byte, reply []byte) ([]byte, error) {
	made, err := c.rueidis(ctx)
	if err != nil {
		return reply, err
	}
	if err := c.dialer.enter(); err != nil {
		return reply, err
	}
	k := c.sends.Get().(*sending)
	k.Context, k.alone, k.dialed = ctx, c.dialer.alone() && soonOver(ctx), false
	r := k.run(made, s, keys, args)
	if _, down := errors.AsType[*errDown](r.NonRedisError()); down && k.alone {
		k.alone = false
		r = k.run(made, s, keys, args)
	}
	c.dialer.leave(ctx, r.NonRedisError())
	if r.NonRedisError() == nil && !k.dialed { // else the client may hold on to it
		k.Context = nil
		c.sends.Put(k)
	}
	return c.read(r, reply)
}

// read appends an answer to reply.
func (c *client) read(r rueidis.RedisResult, reply []byte) ([]byte, error) {
	m, err := r.ToMessage()
	if errors.Is(err, rueidis.ErrNoSlot) {
		err = fmt.Errorf("%w: a part of the cluster is missing: see CLUSTER INFO on its nodes", err)
	}
	if err != nil {
		return reply, err
	}
	if m.IsInt64() {
		n, _ := m.AsInt64()
		return c.dialer.replies.take(n, reply)
	}
	text, err := m.ToString()
	return append(reply, text...), err
}

// command runs a script, by EVALSHA or EVAL, without a copy of what it is made of: that is not
// used again before there is an answer.
func command(c rueidis.Client, verb, script string, keys, args [][]byte) rueidis.Completed {
	a := c.B().Arbitrary(verb, script, strconv.Itoa(len(keys)))
	for _, key := range keys {
		a = a.Keys(rueidis.BinaryString(key))
	}
	for _, arg := range args {
		a = a.Args(rueidis.BinaryString(arg))
	}
	return a.Build()
}

// A sending is the context of a caller, who must not wait for a connection.
type sending struct {
	context.Context
	alone  bool // it has a connection to itself
	dialed bool // a connection was made for it: a context that the client made of it may outlast it
}

// mostAlone is how long a call may last that is alone: nothing but its deadline ends it, and
// the client gives it no longer.
const mostAlone = time.Second

func soonOver(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && time.Until(at) <= mostAlone
}

// run asks by the script's hash, and with its text if the server does not know it.
func (c *sending) run(to rueidis.Client, s *script, keys, args [][]byte) rueidis.RedisResult {
	r := to.Do(c, c.by(command(to, "EVALSHA", s.sha, keys, args)))
	if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
		r = to.Do(c, c.by(command(to, "EVAL", s.text, keys, args)))
	}
	return r
}

// by is the command, sent over the connection that the call is to have.
func (c *sending) by(cmd rueidis.Completed) rueidis.Completed {
	if c.alone {
		return cmd
	}
	return cmd.ToPipe()
}

// Deadline is that of a call that is alone. Without one the client shares the connection, and a
// caller who leaves is heard at once.
func (c *sending) Deadline() (time.Time, bool) {
	if c.alone {
		return c.Context.Deadline()
	}
	return time.Time{}, false
}

// Done is never nil, for the same reason.
func (c *sending) Done() <-chan struct{} {
	if done := c.Context.Done(); done != nil {
		return done
	}
	return never
}

var never = make(chan struct{})

type sendingKey struct{}

func (c *sending) Value(key any) any {
	if key == (sendingKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// sendingOf is the call on whose behalf a dial is made, nil if it is made for the client itself.
func sendingOf(ctx context.Context) *sending {
	k, _ := ctx.Value(sendingKey{}).(*sending)
	return k
}
