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
	mostDelay  = int64(900_000) // the longest delay of a message in SQS
	unheard    = int64(30_000)  // how long after a delivery was due another message is sent if it was not claimed
	unheardYet = int64(300_000) // the interval of further messages
)

// nudges sets when a sweep sends a message for a queued delivery: as soon as SQS can delay it until the delivery is
// due, or later if the delivery is not claimed.
func (r *record) nudges() {
	if at := now(); r.Due-at > mostDelay {
		r.Nudge = r.Due - mostDelay
	} else {
		r.Nudge = max(at, r.Due) + unheard
	}
}

// nudged sets the next message after a sweep has sent one.
func (r *record) nudged() { r.Nudge = max(now()+unheardYet, r.Due+unheard) }

// A message announces that a delivery is due. A process that receives it only looks for due deliveries.
type message struct {
	Seq      int64
	Upstream string
	delay    int64 // in milliseconds
}

// A waker sends messages in batches.
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

// wake sends a message for a queued delivery. If it cannot be sent, or the channel is full, a sweep sends it later.
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

// inBatch is the maximum number of messages in a request to SQS.
const inBatch = 10

// send sends a message together with those that are pending.
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
	_, _ = k.s.o.Queue.SendMessageBatch(ctx, in) // if this fails, a sweep sends messages for unclaimed deliveries
}

func (k *waker) close() {
	close(k.stop)
	k.all.Wait()
}

// unseen is the visibility timeout of received messages, which is extended while they are held.
const unseen = 60 * time.Second

// mostHeld is how long a message is held at most, because SQS takes it back after 12 hours.
const mostHeld = 11 * time.Hour

// A holding is a received message for a delivery that waits or is being sent by this process.
type holding struct {
	message
	receipt string
	since   time.Time
}

// Watch receives messages until ctx ends, and calls kick for upstreams with due deliveries. It holds a message while
// the delivery waits or is being sent by this process, so that another process receives the message soon after this one
// ends. It deletes messages for deliveries that have ended, are not due yet, or are claimed by another process. It
// calls failed with errors and tries again.
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
		if json.Unmarshal([]byte(aws.ToString(m.Body)), &is.message) == nil && is.Seq != 0 { // unreadable messages go to the dead letter queue
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

// renew extends the visibility timeout of the messages that are still useful.
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

// sort reads the deliveries of messages, and deletes the messages that are no longer useful.
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
			_, _ = h.s.o.Queue.DeleteMessageBatch(ctx, in) // if this fails, SQS delivers them again
			in.Entries = nil
		}
	}
	if len(in.Entries) > 0 {
		_, _ = h.s.o.Queue.DeleteMessageBatch(ctx, in)
	}
	return useful, err
}

// needs reports whether a message for the record is useful: the delivery is due, or this process is sending it.
func (s *Store) needs(r *record) bool {
	if r == nil {
		return false
	}
	return r.due(string(r.Upstream), now()+1000) || r.Status == delivery.Processing && r.Home == s.home
}
