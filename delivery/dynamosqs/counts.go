package dynamosqs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

type countKey struct {
	upstream string
	status   delivery.Status
}

var statuses = [...]delivery.Status{delivery.Created, delivery.Queued, delivery.Processing, delivery.Completed, delivery.Failed}

// A work is what one ask changes: its differences of the counts are written together.
type work struct {
	s      *Store
	mu     sync.Mutex
	counts map[countKey]int64
}

func (s *Store) work() *work { return &work{s: s, counts: make(map[countKey]int64)} }

// moved counts a record that came to its status from another; "" is none.
func (w *work) moved(r *record, from delivery.Status) { w.moves(string(r.Upstream), from, r.Status) }

func (w *work) moves(upstream string, from, to delivery.Status) {
	if from == to {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if from != "" {
		w.counts[countKey{upstream, from}]--
	}
	if to != "" {
		w.counts[countKey{upstream, to}]++
	}
}

// done writes the differences. What cannot be written now is written later: the work has been done.
func (w *work) done(ctx context.Context) {
	w.owe()
	w.s.pay(context.WithoutCancel(ctx))
}

// owe leaves the differences to be written later.
func (w *work) owe() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for k, n := range w.counts {
		w.s.owed[k] += n
	}
	clear(w.counts)
}

// pay writes the differences that are owed, with one write an upstream. A process that ends before loses them: see recount.
func (s *Store) pay(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	s.mu.Lock()
	owed := s.owed
	s.owed = make(map[countKey]int64)
	s.mu.Unlock()
	of := make(map[string]item)
	for k, n := range owed {
		if n == 0 {
			continue
		}
		if of[k.upstream] == nil {
			of[k.upstream] = make(item)
		}
		of[k.upstream][":"+string(k.status)] = num(n)
	}
	for upstream, values := range of {
		var adds []string
		for _, st := range statuses {
			if values[":"+string(st)] != nil {
				adds = append(adds, fmt.Sprintf("n_%s :%s", st, st))
			}
		}
		if _, _, err := s.update(ctx, "C#"+partition(upstream), 0, "ADD "+strings.Join(adds, ", "), "", values); err != nil {
			s.mu.Lock()
			for k, n := range owed {
				if k.upstream == upstream {
					s.owed[k] += n
				}
			}
			s.mu.Unlock()
		}
	}
}

// know has the table list an upstream before anything of it is stored.
func (s *Store) know(ctx context.Context, upstream string) error {
	s.mu.Lock()
	known := s.known[upstream]
	s.mu.Unlock()
	if known {
		return nil
	}
	_, _, err := s.update(ctx, "U", 0, "ADD upstreams :u", "", item{":u": &types.AttributeValueMemberSS{Value: []string{partition(upstream)}}})
	if err == nil {
		s.mu.Lock()
		s.known[upstream] = true
		s.mu.Unlock()
	}
	return err
}

// upstreams are all that ever had a delivery.
func (s *Store) upstreams(ctx context.Context) ([]string, error) {
	it, err := s.item(ctx, "U", 0)
	if err != nil {
		return nil, err
	}
	set, _ := it["upstreams"].(*types.AttributeValueMemberSS)
	if set == nil {
		return nil, nil
	}
	all := slices.Clone(set.Value)
	for i, u := range all {
		if plain, err := strconv.Unquote(u); err == nil {
			all[i] = plain
		}
	}
	slices.Sort(all)
	return all, nil
}

// Counts is how many deliveries there are, as counted. An upstream for which something is queued is told of whatever the counts say, which
// a process that ended may have left wrong for a while.
func (s *Store) Counts(ctx context.Context) (all []delivery.Count, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	s.pay(ctx)
	names, err := s.upstreams(ctx)
	if err != nil {
		return nil, s.explain("counts", err)
	}
	found := make([][]delivery.Count, len(names))
	err = each(names, func(i int, upstream string) (err error) {
		found[i], err = s.countsOf(ctx, upstream)
		return err
	})
	return slices.Concat(found...), s.explain("counts", err)
}

func (s *Store) countsOf(ctx context.Context, upstream string) (all []delivery.Count, err error) {
	it, err := s.item(ctx, "C#"+partition(upstream), 0)
	if err != nil {
		return nil, err
	}
	for _, st := range statuses {
		c := delivery.Count{Upstream: upstream, Status: st, N: number(it, "n_"+string(st))}
		if st == delivery.Failed && c.N > 0 || st == delivery.Queued && c.N <= 0 {
			first, ok, err := s.first(ctx, string(st), upstream)
			switch {
			case err != nil:
				return nil, err
			case !ok:
				continue
			case st == delivery.Failed:
				c.Oldest = stored.At(first)
			default:
				c.N = 1
			}
		}
		if c.N > 0 {
			all = append(all, c)
		}
	}
	return all, nil
}

// first is the first instant in the index of what is due, or dead.
func (s *Store) first(ctx context.Context, status, upstream string) (ms int64, ok bool, err error) {
	err = s.query(ctx, &dynamodb.QueryInput{IndexName: aws.String("due"), KeyConditionExpression: aws.String("q = :q"), Limit: aws.Int32(1),
		ExpressionAttributeValues: item{":q": str(status + " " + partition(upstream))}}, func(it item) (bool, error) {
		ms, ok = instant(it), true
		return false, nil
	})
	return ms, ok, err
}

// instant is that of a place among what is due.
func instant(it item) int64 {
	of, _, _ := strings.Cut(text(it, "d"), " ")
	ms, _ := strconv.ParseInt(of, 10, 64)
	return ms
}

// recounting is how long a store lets counts stand before it compares them with what there is.
const recounting = time.Hour

// recount puts right the counts of upstreams that no ask changes meanwhile.
func (s *Store) recount(ctx context.Context) error {
	s.mu.Lock()
	due := time.Since(s.summed) >= recounting
	if due {
		s.summed = time.Now()
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	names, err := s.upstreams(ctx)
	for _, upstream := range names {
		if err == nil {
			err = s.recountOf(ctx, upstream)
		}
	}
	return err
}

func (s *Store) recountOf(ctx context.Context, upstream string) error {
	k := "C#" + partition(upstream)
	before, err := s.item(ctx, k, 0)
	if err != nil {
		return err
	}
	same, sets, values := "", "", make(item)
	for _, st := range statuses {
		n, err := s.number(ctx, upstream, st)
		if err != nil {
			return err
		}
		name := "n_" + string(st)
		if was, there := before[name]; there {
			same, values[":was_"+string(st)] = same+" AND "+name+" = :was_"+string(st), was
		} else {
			same += " AND attribute_not_exists(" + name + ")"
		}
		if n != number(before, name) {
			sets, values[":"+string(st)] = sets+", "+name+" = :"+string(st), num(n)
		}
	}
	if sets == "" {
		return nil
	}
	_, _, err = s.update(ctx, k, 0, "SET "+sets[2:], same[len(" AND "):], values) // another time, if it did not hold
	return err
}

// number counts the deliveries of an upstream and status.
func (s *Store) number(ctx context.Context, upstream string, st delivery.Status) (n int64, err error) {
	in := &dynamodb.QueryInput{TableName: &s.o.Name, IndexName: aws.String("list"), KeyConditionExpression: aws.String("s = :s"), Select: types.SelectCount,
		ExpressionAttributeValues: item{":s": str(string(st) + " " + partition(upstream))}}
	for {
		out, err := s.o.Table.Query(ctx, in, soon)
		if err != nil {
			return 0, err
		}
		n += int64(out.Count)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return n, nil
		}
	}
}
