//go:build unix

package servers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// dynamo sends a request to dynalite and decodes the response.
func dynamo(s *Server, op, body string, out any) error {
	r, err := http.NewRequest("POST", s.Endpoint(), strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = http.Header{"X-Amz-Target": {"DynamoDB_20120810." + op}, "Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Date": {"20200101T000000Z"},
		"Authorization": {"AWS4-HMAC-SHA256 Credential=id/20200101/r/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=0"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", op, resp.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// A shutdown of dynalite completes the writes that have begun, so each stored item is in its indexes afterwards, as in
// DynamoDB.
func TestDynaliteKeepsIndexesWhenShut(t *testing.T) {
	s := Dynalite(t, "--path", t.TempDir())
	var none struct{}
	const index = `[{"IndexName": "due", "KeySchema": [{"AttributeName": "q", "KeyType": "HASH"}], "Projection": {"ProjectionType": "KEYS_ONLY"}}]`
	if err := dynamo(s, "CreateTable", `{"TableName": "table", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
		"AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}, {"AttributeName": "q", "AttributeType": "S"}], "GlobalSecondaryIndexes": `+index+`}`, &none); err != nil {
		t.Fatal(err)
	}
	var state struct{ Table struct{ TableStatus string } }
	if err := s.until(func() bool {
		return dynamo(s, "DescribeTable", `{"TableName": "table"}`, &state) == nil && state.Table.TableStatus == "ACTIVE"
	}); err != nil {
		t.Fatal(err)
	}
	const keys = 16
	for range 5 {
		var writers sync.WaitGroup
		written := make(chan struct{}, 10_000)
		for k := range keys {
			writers.Go(func() {
				for n := 0; dynamo(s, "PutItem", fmt.Sprintf(`{"TableName": "table", "Item": {"k": {"S": "%d"}, "q": {"S": "%d-%d"}}}`, k, k, n), &none) == nil; n++ {
					written <- struct{}{}
				}
			})
		}
		for range 3 * keys {
			<-written
		}
		s.Shut()
		writers.Wait()
		s.Restart()
		for k := range keys {
			var got struct{ Item map[string]map[string]string }
			if err := dynamo(s, "GetItem", fmt.Sprintf(`{"TableName": "table", "Key": {"k": {"S": "%d"}}}`, k), &got); err != nil {
				t.Fatal(err)
			}
			var found struct{ Count int }
			if err := dynamo(s, "Query", fmt.Sprintf(`{"TableName": "table", "IndexName": "due", "KeyConditionExpression": "q = :q", "ExpressionAttributeValues": {":q": {"S": %q}}}`, got.Item["q"]["S"]), &found); err != nil {
				t.Fatal(err)
			}
			if found.Count != 1 {
				t.Errorf("%s is stored, and %d times in the index", got.Item["q"]["S"], found.Count)
			}
		}
	}
}
