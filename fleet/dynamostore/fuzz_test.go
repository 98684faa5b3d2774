package dynamostore

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// FuzzItems checks that any attributes of an item are read without a panic, and that a lane's answer survives
// encoding and decoding.
func FuzzItems(f *testing.F) {
	a := answer{lane: 7, id: 8, second: 9, granted: 10, extras: []int64{-1, 0}}
	f.Add(a.String(), "1", []byte("value"))
	f.Add("...", "", []byte{})
	f.Add("z.z.z.99999999999999999999.-", "-9223372036854775808", []byte(nil))
	f.Fuzz(func(t *testing.T, text, number string, value []byte) {
		a := parseAnswer(text)
		if b := parseAnswer(a.String()); b.String() != a.String() {
			t.Errorf("%q is read as %q, and that as %q", text, a.String(), b.String())
		}
		attributes := map[string]types.AttributeValue{
			"v": &types.AttributeValueMemberN{Value: number}, "e": &types.AttributeValueMemberN{Value: text},
			"d": &types.AttributeValueMemberB{Value: value}, "n": &types.AttributeValueMemberS{Value: text},
			text: &types.AttributeValueMemberS{Value: text}, number: &types.AttributeValueMemberN{Value: number},
		}
		r := recordOf("name", attributes)
		if string(r.Value) != string(value) && text != "d" && number != "d" {
			t.Errorf("%q is read as %q", value, r.Value)
		}
		it := make(item)
		it.learn(attributes)
		for name := range it {
			_, _ = it.number(name)
		}
	})
}
