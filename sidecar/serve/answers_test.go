package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// weir starts without its table of answers, uses the answers that a reload finds, and keeps them while the table is
// unreachable.
func TestStaticAnswersOfATable(t *testing.T) {
	withKeys(t)
	db := servers.Dynalite(t)
	path := filepath.Join(t.TempDir(), "weir.yaml")
	withTables(t, path, tierOf(db.Endpoint(), "answers"))
	file := load(t, path)
	check := func() Trial { return tryAnswers(file)[0].result(t.Context()) }
	if r := check(); r.Err == nil {
		t.Error("weir check -connect finds a table that is not there")
	}
	w, err := Start(path, Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	ask := func(want string) {
		t.Helper()
		resp, err := http.Post("http://"+w.Addr()+"/chat/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"How can I return an item?"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), want) {
			t.Errorf("want %q, got %s %s", want, resp.Status, body)
		}
	}
	ask("Sorry.")
	client := dynamodb.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(db.Endpoint()), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
	})})
	name := aws.String("answers")
	_, err = client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err == nil {
		err = dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 20*time.Millisecond, 20*time.Millisecond
		}).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: name}, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	textOf := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	for id, answer := range map[string]string{"returns": "Within 30 days.", "bad": ""} {
		item := map[string]types.AttributeValue{"id": textOf(id), "keywords": &types.AttributeValueMemberSS{Value: []string{"return an item " + id}}, "answer": textOf(answer)}
		if id == "returns" {
			item["questions"] = &types.AttributeValueMemberSS{Value: []string{"How do I return an item?"}}
		} else {
			delete(item, "answer")
		}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	if r := check(); r.Err != nil || !strings.Contains(r.Said, "1 answers") || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], `row "bad"`) {
		t.Errorf("weir check -connect: %+v", r)
	}
	var reader *tableReader
	w.models.mu.Lock()
	for _, r := range w.models.tables {
		reader = r
	}
	w.models.mu.Unlock()
	reload := func(done func() bool) {
		t.Helper()
		w.Reload()
		for !done() {
			runtime.Gosched()
		}
	}
	reload(func() bool { return !reader.State().Read.IsZero() })
	ask("Within 30 days.")
	db.Kill()
	failed := reader.State().Failed
	reload(func() bool { return reader.State().Failed > failed })
	ask("Within 30 days.")
}
