package pauses

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/pause"
)

func forever(pause.Reason) time.Duration { return pause.Longest }

// A record stays small enough for every store, regardless of the number of pauses. Entries of operators have
// priority, then the entries that last longest.
func TestARecordStaysSmall(t *testing.T) {
	at := 500_000 * time.Hour
	said := make(pause.Set)
	stamp := int64(at / time.Microsecond)
	add := func(of pause.Subject, why pause.Reason, d time.Duration) {
		e := said[of]
		e.Spans[why] = pause.Span{Until: at + d, At: stamp, By: strings.Repeat("b", 32)}
		said[of] = e
	}
	for i := range 5000 {
		add(pause.OfLimit("limit", "tenant", fmt.Sprint(strings.Repeat("<&>", 80), i)), pause.Rate, time.Duration(1+i)*time.Second)
	}
	add(pause.OfPool("by hand"), pause.Hand, time.Second)
	said[pause.OfPool("lifted")] = pause.Entry{Lifted: stamp}
	kept, raw, err := encode(said)
	if err != nil || len(raw) > mostBytes || len(kept) > mostItems || len(kept) < 50 {
		t.Fatalf("%d of %d in %d bytes, %v", len(kept), len(said), len(raw), err)
	}
	if e := kept[pause.OfPool("by hand")]; e.Until() == 0 || kept[pause.OfPool("lifted")].Lifted == 0 {
		t.Error("what people have said found no room")
	}
	if e := kept[pause.OfLimit("limit", "tenant", fmt.Sprint(strings.Repeat("<&>", 80), 4999))]; e.Until() == 0 {
		t.Error("what lasts longest found no room")
	}
	again, damaged, err := decode(raw, at, forever)
	if damaged > 0 || err != nil || len(again) != len(kept) {
		t.Fatalf("read again: %d of %d, %d damaged, %v", len(again), len(kept), damaged, err)
	}
	for of, e := range kept {
		if again[of] != e {
			t.Errorf("%v: %+v became %+v", of, e, again[of])
		}
	}
}

// A record cannot pause a subject for longer than a pause may last.
func TestARecordHoldsNoLongerThanAPauseMay(t *testing.T) {
	at := 500_000 * time.Hour
	given := at - time.Minute
	stamp := func(d time.Duration) int64 { return int64(d / time.Microsecond) }
	const three = 3 * 365 * 24 * time.Hour
	longest := func(why pause.Reason) time.Duration { return time.Duration(why+1) * 15 * time.Minute }
	raw := fmt.Sprintf(`{"pauses":[{"what":"pool","name":"p","rate":{"until":%d,"at":%d,"by":"x"},"quota":{"until":%d,"at":%d,"by":"x"}}]}`,
		stamp(at+three), stamp(given), stamp(at+time.Minute), stamp(given))
	said, damaged, err := decode([]byte(raw), at, longest)
	if damaged > 0 || err != nil {
		t.Fatalf("%d damaged, %v", damaged, err)
	}
	e := said[pause.OfPool("p")]
	if got, want := e.Spans[pause.Rate].Until, given+longest(pause.Rate); got != want {
		t.Errorf("three years: until %v, want %v", got, want)
	}
	if got, want := e.Spans[pause.Quota].Until, at+time.Minute; got != want {
		t.Errorf("a minute: until %v, want %v", got, want)
	}
}

// An invalid item does not affect the others.
func TestWhatCannotBeIsLeftOut(t *testing.T) {
	at := 500_000 * time.Hour
	now := int64(at / time.Microsecond)
	good := fmt.Sprintf(`{"what":"pool","name":"p","rate":{"until":%d,"at":%d,"by":"x"}}`, now+5e6, now)
	for _, bad := range []string{
		`{}`, `{"what":"nobody"}`, fmt.Sprintf(`{"what":"pool","name":%q,"lifted":1}`, strings.Repeat("x", 301)),
		`{"what":"pool","name":"q","rate":{"until":-5,"at":5}}`, `{"what":"pool","name":"q","rate":{"until":5,"at":0}}`,
		fmt.Sprintf(`{"what":"pool","name":"q","rate":{"until":5,"at":%d}}`, now+4e9), fmt.Sprintf(`{"what":"pool","name":"q","lifted":%d}`, now+4e9),
		`{"what":"pool","name":"q","lifted":-1}`,
	} {
		for _, text := range []string{bad + "," + good, good + "," + bad} {
			said, damaged, err := decode([]byte(`{"pauses":[`+text+`]}`), at, forever)
			e := said[pause.OfPool("p")]
			if damaged != 1 || err == nil || len(said) != 1 || e.Until() != at+5*time.Second {
				t.Errorf("%s: %+v, %d damaged, %v", text, said, damaged, err)
			}
		}
	}
	if said, damaged, err := decode([]byte(strings.Repeat(" ", mostRead+1)), at, forever); len(said) > 0 || damaged == 0 || err == nil {
		t.Errorf("a record of any length: %v, %d, %v", said, damaged, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"pauses":[{"what":"pool","name":"p","rate":{"until":1800000005000000,"at":1800000000000000,"by":"x"},"lifted":3}]}`), int64(1_800_000_000_000_000))
	f.Fuzz(func(t *testing.T, raw []byte, micros int64) {
		if micros < 0 || micros > 4e15 {
			return
		}
		at := time.Duration(micros) * time.Microsecond
		said, _, _ := decode(raw, at, func(why pause.Reason) time.Duration { return time.Minute })
		for of, e := range said {
			if e.Until() > at+time.Minute || e.Lifted > int64((at+ahead)/time.Microsecond) {
				t.Errorf("%v: %+v at %v", of, e, at)
			}
		}
		kept, text, err := encode(said)
		if err != nil {
			t.Fatal(err)
		}
		again, damaged, _ := decode(text, at, func(pause.Reason) time.Duration { return time.Minute })
		if damaged > 0 || len(again) != len(kept) {
			t.Errorf("%s: %d of %d, %d damaged", text, len(again), len(kept), damaged)
		}
	})
}
