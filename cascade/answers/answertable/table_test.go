package answertable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/answers/answertable"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

func list(texts ...string) types.AttributeValue {
	l := &types.AttributeValueMemberL{}
	for _, t := range texts {
		l.Value = append(l.Value, s(t))
	}
	return l
}

func byLanguage(of map[string]types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: of}
}

type item = map[string]types.AttributeValue

// table returns a table of a dynalite server.
func table(t *testing.T) (*dynamodb.Client, *servers.Server, func(item)) {
	server := servers.Dynalite(t)
	client := dynamodb.New(dynamodb.Options{Region: "local", BaseEndpoint: aws.String(server.Endpoint()), Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), RetryMaxAttempts: 1})
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("answers"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if err == nil {
		err = dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 20*time.Millisecond, 20*time.Millisecond
		}).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("answers")}, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client, server, func(i item) {
		t.Helper()
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("answers"), Item: i}); err != nil {
			t.Fatal(err)
		}
	}
}

// All formats of a row can be read. An invalid row is reported and does not affect other rows. The last answers stay in
// use while the table is unavailable.
func TestAnswersOfATable(t *testing.T) {
	client, server, put := table(t)
	put(item{"id": s("returns"), "questions": byLanguage(item{"en": list("How do I return an item?"), "ja": list("返品したいのですが")}), "answer": byLanguage(item{"en": s("Within 30 days."), "ja": s("30日以内に。")})})
	put(item{"id": s("hours"), "questions": &types.AttributeValueMemberSS{Value: []string{"When do you open?", "What are your opening hours?"}}, "keywords": list("opening hours"), "answer": s("At nine."), "languages": list("en")})
	put(item{"id": s("number"), "questions": list("How many shops are there?"), "answer": &types.AttributeValueMemberN{Value: "12"}})
	put(item{"id": s("bad-field"), "questions": list("Who?"), "anwser": s("I.")})
	put(item{"id": s("bad-kind"), "questions": s("Who?"), "answer": &types.AttributeValueMemberBOOL{Value: true}})
	put(item{"id": s("same-question"), "questions": list("How many shops are there?"), "answer": s("13")})
	tab := answertable.New(client, "answers", 0)
	if _, ok := tab.Book().Find("When do you open?"); ok {
		t.Error("found before it was read")
	}
	wrong, err := tab.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := wrong.Error()
	for _, want := range []string{`table answers, row "bad-field"`, "anwser", `row "bad-kind"`, `row "same-question"`, "another row"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in %s", want, said)
		}
	}
	finds := func() {
		t.Helper()
		for question, want := range map[string]string{"how can I return an item": "Within 30 days.", "返品したいのですが": "30日以内に。", "when do you open": "At nine.", "how many shops are there": "12"} {
			if m, ok := tab.Book().Find(question); !ok || m.Answer != want {
				t.Errorf("%q: %+v, %v", question, m, ok)
			}
		}
	}
	finds()
	if state := tab.State(); state.Entries != 3 || state.Bad == 0 || state.Read.IsZero() || state.Err != nil {
		t.Errorf("got %+v", state)
	}
	read := tab.State().Read
	server.Kill()
	if _, err := tab.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "table answers") {
		t.Errorf("without the table: %v", err)
	}
	finds()
	if state := tab.State(); state.Err == nil || state.Failed != 1 || state.Read != read || state.Entries != 3 {
		t.Errorf("without the table: %+v", state)
	}
}

// A table with several pages is read completely.
func TestATableOfManyPagesIsRead(t *testing.T) {
	client, _, put := table(t)
	long := strings.Repeat("x", 60<<10)
	for i := range 40 { // 2.4 MB; a page has 1 MB
		put(item{"id": s(fmt.Sprint(i)), "questions": list(fmt.Sprintf("What is in volume %d?", i)), "answer": s(fmt.Sprint(i, " ", long))})
	}
	tab := answertable.New(client, "answers", 0)
	if wrong, err := tab.Read(t.Context()); err != nil || len(wrong) > 0 || tab.State().Entries != 40 {
		t.Errorf("%v, %v, %d rows", wrong, err, tab.State().Entries)
	}
}

// A pages has the responses of a client.
type pages struct {
	items []item
	page  int
	asked int
	err   error // after the first page
}

func (p *pages) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if p.asked++; p.asked > 1 && p.err != nil {
		return nil, p.err
	}
	from := 0
	if in.ExclusiveStartKey != nil {
		_, _ = fmt.Sscan(in.ExclusiveStartKey["id"].(*types.AttributeValueMemberS).Value, &from)
	}
	to := min(from+p.page, len(p.items))
	out := &dynamodb.ScanOutput{Items: p.items[from:to]}
	if to < len(p.items) {
		out.LastEvaluatedKey = item{"id": s(fmt.Sprint(to))}
	}
	return out, nil
}

// A table that is too large or cannot be read completely changes nothing. Reading stops at the limit.
func TestATableIsBounded(t *testing.T) {
	row := func(i int, more string) item {
		return item{"id": s(fmt.Sprint(i)), "keywords": list(fmt.Sprint("word", i)), "answer": s("so " + more)}
	}
	p := &pages{items: []item{row(0, "")}, page: 100}
	tab := answertable.New(p, "answers", 0)
	if _, err := tab.Read(t.Context()); err != nil || tab.State().Entries != 1 {
		t.Fatal(err)
	}
	many := make([]item, 2*answers.MaxRows)
	for i := range many {
		many[i] = row(i, "")
	}
	large := make([]item, 400)
	for i := range large {
		large[i] = row(i, strings.Repeat("x", 60<<10))
	}
	for name, c := range map[string]struct {
		pages
		want string
		most int
	}{
		"rows":           {pages{items: many, page: 1000}, "10000 rows", 11},
		"bytes":          {pages{items: large, page: 10}, "8 MiB", 15},
		"a page is lost": {pages{items: many[:200], page: 100, err: errors.New("gone")}, "gone", 2},
		"another key":    {pages{items: []item{{"k": s("1")}}, page: 10}, "partition key", 1},
	} {
		*p = c.pages
		if _, err := tab.Read(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) || p.asked > c.most {
			t.Errorf("%s: %v, after %d pages", name, err, p.asked)
		}
		if m, ok := tab.Book().Find("word0"); !ok || m.Answer != "so" || tab.State().Entries != 1 {
			t.Errorf("%s: %v", name, m)
		}
	}
	*p = pages{}
	if _, err := tab.Read(t.Context()); err != nil || tab.State().Entries != 0 {
		t.Errorf("an empty table: %v, %d rows", err, tab.State().Entries)
	}
}
