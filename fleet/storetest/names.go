package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

func endedContext(w *world) {
	cause := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	k := bucketOf("bucket", 1, 100*time.Hour, 10).claim(w.now(), 1)
	if err := w.store.Take(ctx, w.ask(3, k)); err == nil {
		w.Error("take: no error")
	}
	if _, err := w.store.Beat(ctx, &fleet.Beat{Group: w.group, Client: "a", Seq: 1, Silence: 1e6, Life: 1e6}); err == nil {
		w.Error("beat: no error")
	}
	if _, _, err := w.store.Load(ctx, w.group, []string{"a"}); err == nil {
		w.Error("load: no error")
	}
	if _, _, err := w.store.Swap(ctx, w.group, fleet.Record{Name: "a", Keep: time.Hour}); err == nil {
		w.Error("swap: no error")
	}
	w.wantLeft(k, 10, "after a call that was never made")
}

var strange = []string{
	"", " ", "\x00", "\x00\x00", "a", "a\x00", "\x00a", "A", "{", "}", "{}", "{a}", "}{", "a{b}c", "a:b", "a", "a/b", "a|b", "a,b",
	"\n", "\r\n", "a\nb", "'", `"`, "`", "\\", "$1", "%s", "%d%n", "*", "?", "[a]", "ü", "u\u0308", "\xff\xfe", "\u202e", "🙂", "0", "00", "-1", "1e3", "nil", "null", "NaN",
	strings.Repeat("k", 255), strings.Repeat("k", 256), strings.Repeat("k", 257), strings.Repeat("{a}\n\x00ü", 1500), strings.Repeat("{a}\n\x00ü", 1500) + "!",
}

// strangeNames checks unusual names. The store may refuse them, but must not confuse them.
func strangeNames(w *world) {
	rule := bucketOf("bucket", 1, 100*time.Hour, 100).rule
	seen := make(map[string]int64)
	for i, key := range strange {
		a := w.ask(int64(i%7)+1, fleet.Claim{Rule: rule, Key: key, Cost: 1})
		if err := w.try(a); err != nil {
			if len(key) <= 128 && key != "" {
				w.Errorf("key %.40q: %v", key, err)
			}
			continue
		}
		seen[key] += a.Granted
	}
	for key, taken := range seen {
		w.wantLeft(fleet.Claim{Rule: rule, Key: key, Cost: 1}, 100-taken, fmt.Sprintf("key %.40q", key))
	}
	w.strangePairs()
	w.strangeRecords()
}

// strangePairs checks that the store separates a limit's name from the key unambiguously.
func (w *world) strangePairs() {
	pairs := [][2]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"a:b", "c"}, {"a", "b:c"}, {"a\x00b", "c"}, {"a", "b\x00c"}, {"a}", "{b"}, {"a}{", "b"}, {"a|", "b"}, {"a", "|b"}}
	for i, p := range pairs {
		rule := bucketOf(p[0], 1, 100*time.Hour, 100).rule
		k := fleet.Claim{Rule: rule, Key: p[1], Cost: 1}
		if a := w.ask(int64(i)+1, k); w.try(a) == nil {
			w.wantLeft(k, 99-int64(i), fmt.Sprintf("limit %q, key %q", p[0], p[1]))
		}
	}
}

func (w *world) strangeRecords() {
	wrote := make(map[string]string)
	for i, name := range strange {
		if _, taken := wrote[name]; taken {
			continue
		}
		r := fleet.Record{Name: name, Value: fmt.Append(nil, i), Keep: time.Hour}
		if _, ok, err := w.store.Swap(context.Background(), w.group, r); err == nil && ok {
			wrote[name] = string(r.Value)
		} else if err == nil {
			w.Errorf("record %.40q is another's", name)
		} else if len(name) <= 128 && name != "" {
			w.Errorf("record %.40q: %v", name, err)
		}
	}
	for name, value := range wrote {
		if got := w.load(name)[0]; string(got.Value) != value {
			w.Errorf("record %.40q holds %q, want %q", name, got.Value, value)
		}
	}
}

// manyKeys checks that the store forgets no limit that is not full, however many keys there are.
func manyKeys(w *world) {
	keys := raced.Of(2000, 100)
	rule, quick := bucketOf("bucket", 1, 100*time.Hour, 10).rule, bucketOf("quick", 1000, time.Millisecond, 1000).rule
	for i := range keys {
		w.must(1, fleet.Claim{Rule: rule, Key: fmt.Sprint(i), Cost: 3}, fleet.Claim{Rule: quick, Key: fmt.Sprint("q", i), Cost: 1})
	}
	for i := 0; i < keys; i += 97 {
		w.wantLeft(fleet.Claim{Rule: rule, Key: fmt.Sprint(i), Cost: 1}, 7, fmt.Sprint("key ", i))
	}
}
