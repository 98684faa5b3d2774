package lambdax

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// fakeSQS is the part of SQS that the SDK's client needs to send and postpone messages.
type fakeSQS struct {
	asked []map[string]any
	long  int // the maximum size of a message; 0 means none
}

func (f *fakeSQS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	in["target"] = r.Header.Get("X-Amz-Target")
	f.asked = append(f.asked, in)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if f.long > 0 && len(body) > f.long {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#InvalidParameterValue","message":"One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes."}`)
		return
	}
	text, _ := in["MessageBody"].(string)
	sum := md5.Sum([]byte(text))
	fmt.Fprintf(w, `{"MessageId":"new","MD5OfMessageBody":%q}`, hex.EncodeToString(sum[:]))
}

func sqsClient(t *testing.T, f *fakeSQS) *sqs.Client {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return sqs.New(sqs.Options{Region: "local", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
}

func TestALetterIsTheMessageAndWhy(t *testing.T) {
	f := &fakeSQS{}
	l := &SQSLetters{sqsClient(t, f), "http://sqs/1/dead.fifo"}
	m := recorded[events.SQSEvent](t, "sqs-event.json").Records[0]
	err := l.Put(t.Context(), &Letter{&Message{SQSMessage: m}, Rejected, "no \x00such topic\uFFFE", 2})
	if err != nil {
		t.Fatal(err)
	}
	in := f.asked[0]
	attributes, _ := in["MessageAttributes"].(map[string]any)
	if in["MessageBody"] != "Message Body" || in["MessageGroupId"] != "weir" || in["MessageDeduplicationId"] != "MessageID_1" || len(attributes) != 4 {
		t.Errorf("sent %v", in)
	}
	var says map[string]any
	why, _ := attributes[WhyAttribute].(map[string]any)
	if err := json.Unmarshal([]byte(fmt.Sprint(why["StringValue"])), &says); err != nil {
		t.Fatal(err)
	}
	if says["reason"] != "rejected" || says["attempts"] != 2.0 || says["message_id"] != "MessageID_1" || strings.ContainsRune(fmt.Sprint(says["detail"]), 0xFFFE) {
		t.Errorf("it says %v", says)
	}
}

func TestALetterWithoutRoomGoesWithoutWhy(t *testing.T) {
	f := &fakeSQS{long: 150}
	l := &SQSLetters{sqsClient(t, f), "http://sqs/1/dead"}
	letter := &Letter{&Message{SQSMessage: events.SQSMessage{MessageId: "m", Body: "b"}}, Rejected, strings.Repeat("long ", 100), 1}
	if err := l.Put(t.Context(), letter); err != nil || len(f.asked) != 2 {
		t.Fatalf("%v after %d sends", err, len(f.asked))
	}
	letter.MessageAttributes = map[string]events.SQSMessageAttribute{}
	for i := range 10 {
		letter.MessageAttributes[fmt.Sprint("a", i)] = events.SQSMessageAttribute{DataType: "String", StringValue: aws.String("v")}
	}
	f.long = 0
	if err := l.Put(t.Context(), letter); err != nil {
		t.Fatal(err)
	}
	if attributes, _ := f.asked[2]["MessageAttributes"].(map[string]any); len(attributes) != 10 || attributes[WhyAttribute] != nil {
		t.Errorf("sent %v", f.asked[2])
	}
}

func TestAMessageIsPutOffByItsVisibility(t *testing.T) {
	f := &fakeSQS{}
	q := &SQSDelays{sqsClient(t, f), "http://sqs/1/q"}
	m := &Message{SQSMessage: events.SQSMessage{MessageId: "m", ReceiptHandle: "handle"}}
	for _, tt := range []struct {
		by      time.Duration
		seconds float64
	}{{1500 * time.Millisecond, 2}, {time.Minute, 60}, {24 * time.Hour, 11 * 3600}} {
		f.asked = nil
		if err := q.Delay(t.Context(), m, tt.by); err != nil {
			t.Fatal(err)
		}
		if in := f.asked[0]; in["VisibilityTimeout"] != tt.seconds || in["ReceiptHandle"] != "handle" || in["target"] != "AmazonSQS.ChangeMessageVisibility" {
			t.Errorf("%v: asked for %v, want %vs", tt.by, in, tt.seconds)
		}
	}
}
