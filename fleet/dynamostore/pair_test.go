package dynamostore

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/limit"
)

// An ask and a settlement of a quota overtake each other, or their responses do. The usage that a process then
// reports in its next ask must not exceed the true usage: in a monthly quota, the difference would be lost.
func TestAnAskAndASettlementThatPassEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		asksFirst bool // the ask is sent first
		holds     func(held, goes chan struct{}, send func() (*http.Response, error)) (*http.Response, error)
	}{
		"the answer to the ask is late":        {true, heldAfter},
		"the ask is late":                      {true, heldBefore},
		"the answer to the settlement is late": {false, heldAfter},
		"the settlement is late":               {false, heldBefore},
	} {
		t.Run(name, func(t *testing.T) {
			hand := storetest.NewHand()
			f := newFake(hand.Now)
			held, goes := make(chan struct{}), make(chan struct{})
			m := &meddler{next: tripper{f}, do: func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
				return c.holds(held, goes, send)
			}}
			s := New(client("http://fake", m), "weir", Options{exact: hand.Now})
			month := &fleet.Rule{Name: "month", Shape: limit.Calendar, Amount: 1000}
			start := hand.Now().Truncate(24 * time.Hour)
			w := limit.Windows{Start: start, End: start.Add(24 * time.Hour), Next: start.Add(48 * time.Hour)}
			quota := func(copies, cost int64) *fleet.Ask {
				return &fleet.Ask{Group: "g", ID: ids.Add(1), Lane: 1, Copies: copies, Claims: []fleet.Claim{{Rule: month, Key: "k", Cost: cost, Windows: w}}}
			}
			first := quota(1, 300)
			if err := take(t, s, first); err != nil || first.Granted != 1 {
				t.Fatal(first.Granted, err)
			}
			second := quota(1, 300)
			back := &fleet.Ask{Group: "g", ID: ids.Add(1), Lane: 2, Settle: []fleet.Settlement{{Rule: month, Key: "k", Windows: w, Back: 200, Mark: first.Grants[0].Mark}}}
			one, other := second, back
			if !c.asksFirst {
				one, other = back, second
			}
			m.with(1)
			over := make(chan error, 1)
			go func() { over <- s.Take(context.Background(), one) }()
			<-held
			if err := take(t, s, other); err != nil {
				t.Fatal(err)
			}
			close(goes)
			if err := <-over; err != nil || second.Granted != 1 {
				t.Fatal(second.Granted, err)
			}
			told := second.Grants[0]
			third := quota(1, 100)
			third.Claims[0].Seen, third.Claims[0].SeenBack = month.Amount-told.Left, told.Back
			again := New(clientOf(f), "weir", Options{exact: hand.Now}) // has the present item
			if err := take(t, again, third); err != nil || third.Granted != 1 {
				t.Fatal(third.Granted, err)
			}
			look := quota(0, 1)
			look.Lane = 3
			if err := take(t, again, look); err != nil || look.Grants[0].Left != 500 {
				t.Errorf("%d left, %v; want 500: 700 were taken, and 200 came back", look.Grants[0].Left, err)
			}
		})
	}
}

func heldAfter(held, goes chan struct{}, send func() (*http.Response, error)) (*http.Response, error) {
	out, err := send()
	close(held)
	<-goes
	return out, err
}

func heldBefore(held, goes chan struct{}, send func() (*http.Response, error)) (*http.Response, error) {
	close(held)
	<-goes
	return send()
}

// Processes do not count updates in progress that never arrive as usage.
func TestWhatIsOnItsWayIsNotGone(t *testing.T) {
	hand := storetest.NewHand()
	f := newFake(hand.Now)
	s := New(clientOf(f), "weir", Options{exact: hand.Now})
	month := &fleet.Rule{Name: "month", Shape: limit.Calendar, Amount: 1000}
	start := hand.Now().Truncate(24 * time.Hour)
	a := &fleet.Ask{Group: "g", ID: ids.Add(1), Lane: 1, Copies: 1, Claims: []fleet.Claim{{Rule: month, Key: "k", Cost: 300, Windows: limit.Windows{Start: start, End: start.Add(24 * time.Hour), Next: start.Add(48 * time.Hour)}}}}
	if err := take(t, s, a); err != nil || a.Granted != 1 {
		t.Fatal(a.Granted, err)
	}
	e := s.entry(name("t", "g", "k"))
	e.mu.Lock()
	e.flies(suffix("month"), 500)
	e.mu.Unlock()
	look := *a
	look.ID, look.Lane, look.Copies = ids.Add(1), 2, 0
	if err := take(t, s, &look); err != nil || look.Grants[0].Left != 700 {
		t.Errorf("%d are told to be left, %v; want 700", look.Grants[0].Left, err)
	}
}

// A count and its returned units come from one response, whichever response is used.
func TestACountAndWhatCameBackAreOneReading(t *testing.T) {
	const count, back = "c0aaaaaa", "h0aaaaaa"
	said := func(c, h string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{count: &types.AttributeValueMemberN{Value: c}, back: &types.AttributeValueMemberN{Value: h}}
	}
	e := newEntry("k")
	e.replace(said("300", "0"), 1, 2)
	e.change(said("600", "0"), nil, 10, 11)
	for what, learn := range map[string]func(){
		"a read that was sent before":           func() { e.replace(said("400", "200"), 5, 12) },
		"an update that was sent before":        func() { e.change(said("400", "200"), nil, 8, 12) },
		"an older read, which is not looked at": func() { e.replace(said("1", "1"), 0, 13) },
	} {
		if learn(); e.item[count] != "600" || e.item[back] != "0" {
			t.Errorf("%s: %s, of which %s have come back; want 600 and 0", what, e.item[count], e.item[back])
		}
	}
	if e.change(said("700", "50"), nil, 9, 14); e.item[count] != "700" || e.item[back] != "50" {
		t.Errorf("the larger one: %s, of which %s have come back; want 700 and 50", e.item[count], e.item[back])
	}
}
