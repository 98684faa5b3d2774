package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/seed1158cd35/weir/fleet"
)

// A Store keeps the state of limits in Redis. Create it with Open. It is safe for concurrent use.
type Store struct {
	client *client
	prefix string
	name   string
	calls  sync.Pool

	adoptMu   sync.RWMutex
	known     map[string]bool      // groups that the store knows, or that could not be registered
	listed    map[string]bool      // groups that are listed in the register
	adoptions map[string]*adoption // by group
	adopting  sync.WaitGroup

	// clock replaces the server's clock in tests that compare instants. It is nil otherwise.
	clock func() int64
}

var (
	_ fleet.Store = (*Store)(nil)
	_ fleet.Named = (*Store)(nil)
)

// Name returns the addresses, the database and the prefix of the store, without credentials.
func (s *Store) Name() string { return s.name }

var (
	//go:embed take.lua
	takeText string

	take = newScript(membersText + takeText)
)

// mostOperations is how many claims and settlements a script can pass to one command.
const mostOperations = 2000

// Take implements fleet.Store.
func (s *Store) Take(ctx context.Context, a *fleet.Ask) error {
	a.Granted, a.Grants = 0, a.Grants[:0]
	if err := a.Check(); err != nil {
		return err
	}
	if n := len(a.Claims) + len(a.Settle); n > mostOperations {
		return fmt.Errorf("%w: %d claims and settlements: at most %d go into one script; settle in several asks", fleet.ErrAsk, n, mostOperations)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.awaitKnown(ctx, a.Group); err != nil {
		return err
	}
	c := s.call()
	s.encode(c, a)
	if err := s.run(ctx, c, take); err != nil {
		return err
	}
	err := decode(a, c.reply)
	s.calls.Put(c)
	return err
}

// now returns 0, or the time of a test's clock.
func (s *Store) now() int64 {
	if s.clock == nil {
		return 0
	}
	return s.clock()
}

// Close closes all connections.
func (s *Store) Close() error {
	s.client.close()
	s.adopting.Wait()
	return nil
}

// A call is the input and the output of one script. It is reused unless the connection failed.
type call struct {
	text  []byte // keys and field names, concatenated
	ends  []int  // end of each in text
	nkeys int    // how many of them are keys
	keys  [][]byte
	arg   []byte
	args  [][]byte // arg, then the field names
	reply []byte

	cells []cell
	homes []home
}

func (s *Store) call() *call {
	c := s.calls.Get().(*call)
	c.text, c.ends, c.arg, c.reply = c.text[:0], c.ends[:0], c.arg[:0], c.reply[:0]
	return c
}

// run runs a script. The caller puts c back into the pool.
func (s *Store) run(ctx context.Context, c *call, script *script) error {
	begin := 0
	cut := func(to [][]byte, ends []int) [][]byte {
		for _, end := range ends {
			to = append(to, c.text[begin:end:end])
			begin = end
		}
		return to
	}
	c.keys = cut(c.keys[:0], c.ends[:c.nkeys])
	c.args = cut(append(c.args[:0], c.arg), c.ends[c.nkeys:])
	reply, err := s.client.run(ctx, script, c.keys, c.args, c.reply)
	if damaged(err) {
		reply, err = s.again(ctx, c, script)
	}
	if err != nil {
		return explain(ctx, err)
	}
	c.reply = reply
	return nil
}

var errReply = errors.New("redisstore: unexpected response of a script: check for a proxy in between, or an older weir with the same prefix")
