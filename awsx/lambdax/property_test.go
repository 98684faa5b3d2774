package lambdax

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// A conduct is the result of handling a message.
type conduct uint8

const (
	succeeds conduct = iota
	fails
	rejected
	panics
	conducts
)

// A story is a queue whose messages are received repeatedly, by functions with different deadlines, until none is left or the
// story ends. The stores of records and letters fail at random. The story records what happened, from which the correct responses
// are derived.
type story struct {
	t    *testing.T
	rand *rand.Rand
	seed uint64
	fifo bool
	name string // of the queue

	records *faulty
	letters *letters

	mu      sync.Mutex
	deaf    bool            // one handling ignores its context
	odds    int             // of a fault of a store, in percent
	epoch   int             // the current batch
	written map[string]bool // recorded as completed
	began   map[string]time.Time
	ended   map[string]time.Time
	over    map[happening]time.Time // when it was handled, became a dead letter or was found to be completed
}

func newStory(t *testing.T, seed uint64) *story {
	s := &story{t: t, rand: rand.New(rand.NewPCG(seed, 0)), seed: seed, over: map[happening]time.Time{}, written: map[string]bool{}}
	s.fifo, s.name = s.rand.IntN(2) == 0, "q"
	if s.fifo {
		s.name = "q.fifo"
	}
	s.deaf, s.odds = s.rand.IntN(4) == 0, s.rand.IntN(3)*10
	s.records = &faulty{Records: &MemoryRecords{}, begin: s.fault, end: s.fault}
	s.letters = &letters{}
	return s
}

func (s *story) chance(odds int) bool { return s.chanceOf(100) < odds }

// chanceOf returns a random number below n.
func (s *story) chanceOf(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *story) fault() error {
	if s.chance(s.odds) {
		return errors.New("the store is away")
	}
	return nil
}

// Put stores a letter, or fails.
func (s *story) Put(ctx context.Context, l *Letter) error {
	if err := s.fault(); err != nil {
		return err
	}
	s.is(ctx, l.MessageId)
	return s.letters.Put(ctx, l)
}

// A happening is the event of one message in one batch.
type happening struct {
	epoch int
	id    string
}

type epochKey struct{}

// is records that a message is complete, in the batch of the context.
func (s *story) is(ctx context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over[happening{ctx.Value(epochKey{}).(int), id}] = time.Now()
}

func (s *story) handle(ctx context.Context, m *Message) error {
	s.mu.Lock()
	if s.written[m.MessageId] {
		s.t.Errorf("seed %d: %s was completed, and is handled again", s.seed, m.MessageId)
	}
	s.began[m.MessageId] = time.Now()
	takes := time.Duration(s.rand.IntN(4000))*time.Millisecond + 137*time.Microsecond // no handling ends exactly when the batch responds
	does, deaf := conduct(s.rand.IntN(int(conducts))), s.deaf
	if s.rand.IntN(2) == 0 {
		does = succeeds
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended[m.MessageId] = time.Now()
	}()
	if deaf {
		time.Sleep(takes)
	} else if !rest(ctx, takes) {
		<-ctx.Done()
		return ctx.Err()
	}
	switch does {
	case fails:
		return errors.New("it fails")
	case rejected:
		return Permanent(errors.New("it cannot be mended"))
	case panics:
		panic("a mistake")
	}
	s.is(ctx, m.MessageId)
	return nil
}

// receives runs one batch, and returns the messages that stay in the queue.
func (s *story) receives(q *SQS, left []events.SQSMessage) []events.SQSMessage {
	s.mu.Lock()
	s.began, s.ended = map[string]time.Time{}, map[string]time.Time{}
	s.epoch++
	s.mu.Unlock()
	limit := time.Duration(1500+s.chanceOf(9000)) * time.Millisecond
	ctx, cancel := context.WithTimeout(context.WithValue(s.t.Context(), epochKey{}, s.epoch), limit)
	defer cancel()
	start := time.Now()
	out, err := q.Batch(ctx, events.SQSEvent{Records: left})
	answered := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || answered.Sub(start) >= limit {
		s.t.Errorf("seed %d: answered %v after %v of %v", s.seed, err, answered.Sub(start), limit)
	}
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	right, seen := s.right(left, answered)
	if !slices.Equal(failed, right) {
		s.t.Errorf("seed %d: batchItemFailures %q, want %q", s.seed, failed, right)
	}
	s.late(start.Add(limit - time.Second))
	s.inOrder(seen)
	return slices.DeleteFunc(slices.Clone(left), func(m events.SQSMessage) bool { return !slices.Contains(failed, m.MessageId) })
}

// right returns the messages that must be received again: messages that were neither handled in this batch before the response,
// nor found to be completed. In a FIFO queue, this includes all that follow.
func (s *story) right(left []events.SQSMessage, answered time.Time) (names, order []string) {
	stopped := map[string]bool{}
	for i := range left {
		id, group := left[i].MessageId, left[i].Attributes["MessageGroupId"]
		if slices.Contains(order, id) {
			continue
		}
		order = append(order, id)
		at, ok := s.over[happening{s.epoch, id}]
		if ok = ok && !at.After(answered); !ok || s.fifo && stopped[group] {
			names = append(names, id)
			stopped[group] = true
		}
	}
	return names, order
}

// late checks that nothing began in the last second, which is for the response.
func (s *story) late(stop time.Time) {
	for id, at := range s.began {
		if at.After(stop) {
			s.t.Errorf("seed %d: %s began %v after the end of what may begin", s.seed, id, at.Sub(stop))
		}
	}
}

// inOrder checks that the messages of each group were handled one after the other.
func (s *story) inOrder(order []string) {
	if !s.fifo {
		return
	}
	last := map[string]string{}
	for _, id := range order {
		if s.began[id].IsZero() {
			continue
		}
		group, _, _ := strings.Cut(id, "/")
		if prev, ok := last[group]; ok && (s.ended[prev].IsZero() || s.began[id].Before(s.ended[prev])) {
			s.t.Errorf("seed %d: %s began before %s ended", s.seed, id, prev)
		}
		last[group] = id
	}
}

func (s *story) batch() []events.SQSMessage {
	var all []events.SQSMessage
	for i := range 1 + s.rand.IntN(12) {
		group := string(rune('a' + s.rand.IntN(3)))
		all = append(all, events.SQSMessage{
			MessageId: fmt.Sprintf("%s/%d", group, i), EventSourceARN: "arn:aws:sqs:eu-west-1:123456789012:" + s.name,
			Attributes: map[string]string{"MessageGroupId": group},
		})
	}
	return all
}

// With random batches, groups, failures and deadlines, the response names exactly the messages that must be received again.
// Completed messages are not handled again, although the queue delivers them again.
func TestBatchesAreAnsweredExactly(t *testing.T) {
	first := rand.Uint64()
	for n := range uint64(1200) {
		synctest.Test(t, func(t *testing.T) {
			s := newStory(t, first+n)
			kept := &knowing{s.records, s}
			q := newSQS(t, SQSOptions{Handle: s.handle, Records: kept, Letters: s, Parallel: 1 + s.rand.IntN(4)})
			left := s.batch()
			for range 4 {
				if len(left) == 0 {
					break
				}
				next := s.receives(q, left)
				if s.chanceOf(2) == 0 && !s.fifo { // the queue delivers some deleted messages again
					next = append(next, left[s.chanceOf(len(left))])
				}
				left = next
				time.Sleep(time.Duration(s.chanceOf(30)) * time.Second)
			}
			time.Sleep(time.Minute)
		})
		if t.Failed() {
			return
		}
	}
}

// knowing are Records that record which messages they report as complete.
type knowing struct {
	Records
	s *story
}

func (k *knowing) Begin(ctx context.Context, id, owner string, until time.Time) (Claim, error) {
	c, err := k.Records.Begin(ctx, id, owner, until)
	if err == nil && c.State == Completed {
		k.s.is(ctx, messageOf(id))
	}
	return c, err
}

// messageOf returns the MessageId of a record.
func messageOf(record string) string {
	_, id, _ := strings.Cut(record, "/")
	return id
}

func (k *knowing) End(ctx context.Context, c Claim, how Ending, keep time.Time) (bool, error) {
	ours, err := k.Records.End(ctx, c, how, keep)
	if err == nil && ours && how == Handled {
		k.s.mu.Lock()
		defer k.s.mu.Unlock()
		k.s.written[messageOf(c.ID)] = true
	}
	return ours, err
}
