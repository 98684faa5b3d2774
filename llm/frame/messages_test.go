package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

func messages(t testing.TB, r *rand.Rand, n int) (all []byte, each []string) {
	t.Helper()
	for i := range n {
		var b bytes.Buffer
		payload := []byte(strings.Repeat("x", r.IntN(60)))
		var err error
		switch r.IntN(3) {
		case 0:
			err = WriteEvent(&b, fmt.Sprint("event", i), payload)
		case 1:
			err = WriteException(&b, "throttlingException", payload)
		default:
			err = encode(&b, eventstream.Message{Payload: payload})
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b.Bytes()...)
		each = append(each, b.String())
	}
	return all, each
}

func TestMessagesAreCutWhateverTheChunks(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 3))
		in, want := messages(t, r, r.IntN(5))
		cut := len(in) - r.IntN(1+min(20, len(in)))
		frames, rest := cutAll(t, &Messages{}, chunked(r, in[:cut]))
		if got := strings.Join(frames, "") + rest; got != string(in[:cut]) {
			t.Fatalf("seed %d: got %q", seed, got)
		}
		for i, f := range frames {
			if f != want[i] {
				t.Fatalf("seed %d: message %d: got %q, want %q", seed, i, f, want[i])
			}
			if _, err := ParseMessage([]byte(f)); err != nil {
				t.Fatalf("seed %d: message %d: %v", seed, i, err)
			}
		}
	}
}

func TestParseMessage(t *testing.T) {
	var h eventstream.Headers
	h.Set("true", eventstream.BoolValue(true))
	h.Set("int8", eventstream.Int8Value(1))
	h.Set("int16", eventstream.Int16Value(1))
	h.Set("int32", eventstream.Int32Value(1))
	h.Set("int64", eventstream.Int64Value(1))
	h.Set("bytes", eventstream.BytesValue("b"))
	h.Set("time", eventstream.TimestampValue(time.Unix(1, 0)))
	h.Set("uuid", eventstream.UUIDValue{})
	h.Set(":message-type", eventstream.StringValue("error"))
	h.Set(":error-code", eventstream.StringValue("InternalError"))
	h.Set(":error-message", eventstream.StringValue("it broke"))
	h.Set(":exception-type", eventstream.StringValue("throttlingException"))
	h.Set(":event-type", eventstream.StringValue("chunk"))
	var b bytes.Buffer
	if err := encode(&b, eventstream.Message{Headers: h, Payload: []byte(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	m, err := ParseMessage(b.Bytes())
	got := fmt.Sprintf("%s %s %s %s %s %s", m.Type, m.ErrorCode, m.ErrorText, m.Exception, m.Event, m.Payload)
	if want := `error InternalError it broke throttlingException chunk {"a":1}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	raw := b.Bytes()
	if n := testing.AllocsPerRun(100, func() { ParseMessage(raw) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestParseMessageFindsEveryFlippedBit(t *testing.T) {
	var b bytes.Buffer
	if err := WriteEvent(&b, "chunk", []byte(`{"bytes":"e30="}`)); err != nil {
		t.Fatal(err)
	}
	for i := range b.Len() * 8 {
		raw := bytes.Clone(b.Bytes())
		raw[i/8] ^= 1 << (i % 8)
		if _, err := ParseMessage(raw); !errors.Is(err, ErrChecksum) {
			t.Fatalf("bit %d: got %v, want %v", i, err, ErrChecksum)
		}
	}
	for n := range b.Len() {
		if _, err := ParseMessage(b.Bytes()[:n]); err == nil {
			t.Fatalf("%d bytes: got no error", n)
		}
	}
}

func TestMessagesTooLargeOrLost(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	small, _ := messages(t, r, 1)
	var b bytes.Buffer
	if err := WriteEvent(&b, "chunk", bytes.Repeat([]byte("x"), 500)); err != nil {
		t.Fatal(err)
	}
	in := slices.Concat(small, b.Bytes(), small)
	for n := 1; n < len(in); n += 7 {
		m := &Messages{Max: 300}
		frames, rest := cutAll(t, m, slices.Collect(slices.Chunk(in, n)))
		if last := len(frames) - 1; frames[0] != string(small) || frames[last] != string(small) || rest != "" || last < 2 {
			t.Fatalf("chunks of %d: got %q", n, frames)
		}
		if most := 300 + n; len(m.w.in) > most {
			t.Errorf("chunks of %d: holds %d bytes, want at most %d", n, len(m.w.in), most)
		}
	}
	frames, rest := cutAll(t, &Messages{}, bytewise([]byte("<html>not an event stream</html>")))
	if len(frames) == 0 || !strings.HasSuffix(frames[0], "|opaque+") || rest != "" {
		t.Errorf("got %q and %q, want opaque pieces", frames, rest)
	}
}

func TestImpossibleLengthsHoldNothing(t *testing.T) {
	for _, lens := range [][2]uint32{{0, 0}, {15, 0}, {16, 1}, {1<<32 - 1, 0}, {100, 1<<32 - 1}} {
		raw := binary.BigEndian.AppendUint32(nil, lens[0])
		raw = binary.BigEndian.AppendUint32(raw, lens[1])
		raw = binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw))
		if frames, rest := cutAll(t, &Messages{}, [][]byte{raw}); len(frames) != 1 || rest != "" {
			t.Errorf("%v: got %q and %q, want one opaque piece", lens, frames, rest)
		}
	}
}

func FuzzMessages(f *testing.F) {
	in, _ := messages(f, rand.New(rand.NewPCG(1, 1)), 4)
	f.Add(in, uint64(1), uint8(200))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, most uint8) {
		r := rand.New(rand.NewPCG(seed, 4))
		frames, _ := cutAll(t, &Messages{Max: int(most)}, chunked(r, in))
		for _, raw := range frames {
			ParseMessage([]byte(raw))
		}
	})
}

// If ParseMessage accepts a message, the AWS SDK reads it with the same result.
func FuzzParseMessage(f *testing.F) {
	var b bytes.Buffer
	if err := WriteException(&b, "throttlingException", []byte(`{"message":"m"}`)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseMessage(raw)
		sdk, sdkErr := eventstream.NewDecoder().Decode(bytes.NewReader(raw), nil)
		if err == nil && sdkErr == nil && !bytes.Equal(m.Payload, sdk.Payload) {
			t.Errorf("payload: got %q, want %q", m.Payload, sdk.Payload)
		}
	})
}

func BenchmarkMessages(b *testing.B) {
	var w bytes.Buffer
	if err := WriteEvent(&w, "contentBlockDelta", bytes.Repeat([]byte("x"), 120)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var m Messages
	for b.Loop() {
		m.Feed(w.Bytes())
		for f, ok := m.Next(); ok; f, ok = m.Next() {
			if _, err := ParseMessage(f.Raw); err != nil {
				b.Fatal(err)
			}
		}
	}
}
