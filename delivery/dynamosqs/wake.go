package dynamosqs

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/seed1158cd35/weir/delivery"
)

const (
	mostDelay  = int64(900_000) // of a message, in SQS
	unheard    = int64(30_000)  // what has been due for so long and was not claimed has another message sent
	unheardYet = int64(300_000) // and again
)

// nudges has a sweep send a message for what was queued: once it is near enough for SQS, or again if nobody claims it.
func (r *record) nudges() {
	if at := now(); r.Due-at > mostDelay {
		r.Nudge = r.Due - mostDelay
	} else {
		r.Nudge = max(at, r.Due) + unheard
	}
}

// nudged is nudges for a record for which a sweep sends a message.
func (r *record) nudged() { r.Nudge = max(now()+unheardYet, r.Due+unheard) }

// A message says that a delivery is due. It is a word to look, and no more.
type message struct {
	Seq      int64
	Upstream string
	delay    int64 // in milliseconds
}

// A waker sends messages, together.
type waker struct {
	s    *Store
	out  chan message
	stop chan struct{}
	all  sync.WaitGroup
}

func newWaker(s *Store) *waker {
	k := &waker{s: s, out: make(chan message, 1000), stop: make(chan struct{})}
	k.all.Go(k.run)
	return k
}

// wake has a message sent for what is queued. One that cannot be sent, or finds no room, is sent by a sweep.
func (s *Store) wake(r *record) {
	if s.waker == nil || r.Due-now() > mostDelay {
		return
	}
	select {
	case s.waker.out <- message{r.seq, string(r.Upstream), max(0, r.Due-now())}:
	default:
	}
}

func (k *waker) run() {
	for {
		select {
		case m := <-k.out:
			k.send(m)
		case <-k.stop:
			for {
				select {
				case m := <-k.out:
					k.send(m)
				default:
					return
				}
			}
		}
	}
}

// inBatch is how many messages SQS takes at once.
const inBatch = 10

// send sends a message, and those that have come meanwhile.
func (k *waker) send(m message) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &k.s.o.QueueURL}
	for more := true; more; {
		b, _ := json.Marshal(m)
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(in.Entries))), MessageBody: aws.String(string(b)), DelaySeconds: int32((m.delay + 999) / 1000)})
		if more = len(in.Entries) < inBatch; more {
			select {
			case m = <-k.out:
			default:
				more = false
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	_, _ = k.s.o.Queue.SendMessageBatch(ctx, in) // a sweep sends again what nobody claims
}

func (k *waker) close() {
	close(k.stop)
	k.all.Wait()
}

// unseen is for how long others do not see a message that was received, unless that is lengthened.
const unseen = 60 * time.Second

// mostHeld is for how long a message is held at most: SQS takes it back after 12 hours.
const mostHeld = 11 * time.Hour

// A holding is a message that was received, for what is to be claimed or is under way here.
type holding struct {
	message
	receipt string
	since   time.Time
}

// Watch receives messages until ctx ends, and calls kick for an upstream of which something is due. A message stays with this process
// while that waits or is under way here, so that it comes to another one soon after this one ends; a message of what is over, not due
// yet or claimed elsewhere is deleted. Failed is told of errors; it tries again.
func (s *Store) Watch(ctx context.Context, kick func(upstream string), failed func(error)) {
	if s.o.Queue == nil {
		return
	}
	h := &holder{s: s, held: make(map[int64]holding)}
	var all sync.WaitGroup
	all.Go(func() {
		for pause(ctx, unseen/3) {
			if err := h.renew(ctx); err != nil && ctx.Err() == nil {
				failed(s.explain("hold messages", err))
			}
		}
	})
	for ctx.Err() == nil {
		if err := h.receive(ctx, kick); err != nil && ctx.Err() == nil {
			failed(s.explain("receive messages", err))
			pause(ctx, time.Second)
		}
	}
	all.Wait()
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

type holder struct {
	s    *Store
	mu   sync.Mutex
	held map[int64]holding
}

func (h *holder) receive(ctx context.Context, kick func(string)) error {
	out, err := h.s.o.Queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &h.s.o.QueueURL, MaxNumberOfMessages: inBatch,
		VisibilityTimeout: int32(unseen / time.Second), WaitTimeSeconds: 20})
	if err != nil {
		return err
	}
	var got []holding
	for _, m := range out.Messages {
		is := holding{receipt: aws.ToString(m.ReceiptHandle), since: time.Now()}
		if json.Unmarshal([]byte(aws.ToString(m.Body)), &is.message) == nil && is.Seq != 0 { // others go to the dead letter queue
			got = append(got, is)
		}
	}
	useful, err := h.sort(ctx, got)
	for _, m := range useful {
		h.mu.Lock()
		h.held[m.Seq] = m
		h.mu.Unlock()
		kick(m.Upstream)
	}
	return err
}

// renew keeps the messages that are still good for something.
func (h *holder) renew(ctx context.Context) error {
	h.mu.Lock()
	var all []holding
	for _, m := range h.held {
		all = append(all, m)
	}
	clear(h.held)
	h.mu.Unlock()
	useful, err := h.sort(ctx, all)
	h.mu.Lock()
	for _, m := range useful {
		if _, newer := h.held[m.Seq]; !newer {
			h.held[m.Seq] = m
		}
	}
	h.mu.Unlock()
	for len(useful) > 0 {
		n := min(inBatch, len(useful))
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &h.s.o.QueueURL}
		for i, m := range useful[:n] {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.receipt), VisibilityTimeout: int32(unseen / time.Second)})
		}
		if _, failed := h.s.o.Queue.ChangeMessageVisibilityBatch(ctx, in); failed != nil {
			return failed
		}
		useful = useful[n:]
	}
	return err
}

// sort looks at what messages are about, and deletes those that are good for nothing any more.
func (h *holder) sort(ctx context.Context, all []holding) (useful []holding, err error) {
	keeps := make([]bool, len(all))
	err = each(all, func(i int, m holding) error {
		r, err := h.s.get(ctx, m.Seq)
		keeps[i] = err != nil || h.s.needs(r) && time.Since(m.since) < mostHeld
		return err
	})
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &h.s.o.QueueURL}
	for i, m := range all {
		if keeps[i] {
			useful = append(useful, m)
			continue
		}
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(m.receipt)})
		if len(in.Entries) == inBatch {
			_, _ = h.s.o.Queue.DeleteMessageBatch(ctx, in) // it comes once more
			in.Entries = nil
		}
	}
	if len(in.Entries) > 0 {
		_, _ = h.s.o.Queue.DeleteMessageBatch(ctx, in)
	}
	return useful, err
}

// needs reports whether a message for the record is good for something: it is due, or under way here.
func (s *Store) needs(r *record) bool {
	if r == nil {
		return false
	}
	return r.due(string(r.Upstream), now()+1000) || r.Status == delivery.Processing && r.Home == s.home
}
