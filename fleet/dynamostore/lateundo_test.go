package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// lateOnes are requests that arrive after their callers have given up.
type lateOnes []func(f *fake) error

func (l *lateOnes) hold(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	*l = append(*l, func(f *fake) error {
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(strings.NewReader(string(text)))
		out, err := f.Do(again)
		if err == nil {
			out.Body.Close()
		}
		return err
	})
	return nil, syscall.ECONNRESET
}

func (l lateOnes) arrive(t *testing.T, f *fake) {
	t.Helper()
	for _, arrives := range l {
		if err := arrives(f); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// An ask of two keys takes units of the first, and the second fails. The units are returned, perhaps only after a
// repeat of the ask. The repeat must then not have been granted them.
func TestALateUndoGivesBackWhatNobodyUses(t *testing.T) {
	f := newFake(time.Now)
	var late lateOnes
	n := 0
	m := &meddler{next: tripper{f}, do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		switch n++; n {
		case 1:
			return send()
		case 2:
			body := `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException","message":"not now"}`
			return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
		return late.hold(r)
	}}
	s := New(client("http://fake", m), "weir", Options{exact: time.Now, sleep: func(context.Context, time.Duration) error { return nil }})
	a := ask(5, "x")
	a.Claims = append(a.Claims, fleet.Claim{Rule: slow, Key: "y", Cost: 1})
	m.with(2 + 1 + retries)
	if err := take(t, s, a); err == nil || len(late) == 0 {
		t.Fatalf("%v after %d attempts to give back", err, len(late))
	}
	a.Again = true
	if err := take(t, s, a); err != nil {
		t.Fatal(err)
	}
	late.arrive(t, f)
	fresh := New(clientOf(f), "weir", Options{exact: time.Now})
	look := ask(0, "x")
	if err := take(t, fresh, look); err != nil {
		t.Fatal(err)
	}
	if left := look.Grants[0].Left; left+a.Granted > 100 {
		t.Errorf("%d left of 100, and %d granted to the repeat", left, a.Granted)
	}
}

// A repeat settles the settlements of its ask once, even if it is granted nothing because the fate of the grant is
// unknown. The update of the second key failed, before or after it was executed, and the return of the first grant
// also failed.
func TestARepeatThatIsGrantedNothingSettlesOnce(t *testing.T) {
	for name, executed := range map[string]bool{"the second key's update arrived": true, "it did not arrive": false} {
		t.Run(name, func(t *testing.T) {
			f := newFake(time.Now)
			var late lateOnes
			n := 0
			m := &meddler{next: tripper{f}, do: func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
				switch n++; {
				case n == 1:
					return send()
				case n == 2 && executed:
					return lose(r, send)
				}
				return late.hold(r)
			}}
			s := New(client("http://fake", m), "weir", Options{exact: time.Now, sleep: func(context.Context, time.Duration) error { return nil }})
			had := ask(40, "y")
			if err := take(t, s, had); err != nil {
				t.Fatal(err)
			}
			a := ask(5, "x")
			a.Claims = append(a.Claims, fleet.Claim{Rule: slow, Key: "y", Cost: 1})
			a.Settle = []fleet.Settlement{{Rule: slow, Key: "x", Owe: 7}, {Rule: slow, Key: "y", Owe: 30, Back: 20, Mark: had.Grants[0].Mark}}
			m.with(1 + 2*(1+retries))
			if err := take(t, s, a); err == nil {
				t.Fatal("no error although neither update was answered")
			}
			m.with(0)
			a.Again = true
			for range 2 {
				if err := take(t, s, a); err != nil || a.Granted != 0 {
					t.Fatalf("granted %d, %v; want none", a.Granted, err)
				}
			}
			taken := int64(0)
			if executed {
				taken = 5 // no call uses them: they are lost
			}
			wantLeft(t, s, "x", 100-5-7)
			wantLeft(t, s, "y", 100-40-30+20-taken)
			late.arrive(t, f)
			fresh := New(clientOf(f), "weir", Options{exact: time.Now})
			wantLeft(t, fresh, "x", 100-7) // the late update returns the unused units
			wantLeft(t, fresh, "y", 100-40-30+20-taken)
		})
	}
}
