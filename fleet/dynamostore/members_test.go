package dynamostore

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// fill sets all fields to numbers other than 0, so that the test notices fields that encode omits.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return
	}
	switch v.Kind() {
	case reflect.Int64:
		v.SetInt(1 + rand.Int64N(1<<50))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			fill(v.Index(i))
		}
	case reflect.Map: // of members
		v.Set(reflect.MakeMap(v.Type()))
		for _, client := range []string{"", "a", "b\x00ü"} {
			r := reflect.New(v.Type().Elem().Elem())
			fill(r.Elem())
			v.SetMapIndex(reflect.ValueOf(client), r)
		}
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

func TestMembersAreEncodedWithAllFields(t *testing.T) {
	for range 100 {
		m := newMembership(1)
		v := reflect.ValueOf(m.Members).Elem()
		for i := range v.NumField() {
			fill(v.Field(i))
		}
		for client, r := range m.Rows {
			// Of an answer, only the member's own fields are stored. The others are computed for each answer.
			r.Answer = fleet.Standing{No: r.Answer.No, Gen: r.Answer.Gen, Part: r.Answer.Part, Until: r.Answer.Until}
			m.none[client] = 1 + rand.Int64N(1<<50)
		}
		got, err := decode(m.encode())
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, m)
		}
	}
}

func FuzzDecodeMembers(f *testing.F) {
	m := newMembership(1_000_000)
	m.Beat(2_000_000, &fleet.Beat{Client: "a", Seq: 1, Silence: 1, Life: 1})
	f.Add(m.encode())
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = decode(b) })
}
