package main

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// inTable measures a table in the DynamoDB emulator, which handles some hundred requests a second. Only the ratios to a bare
// put are comparable.
func (m *measure) inTable(string) {
	ctx := context.Background()
	server := servers.Dynalite(m.tb)
	defer server.Kill()
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: aws.String(server.Endpoint()), HTTPClient: &http.Client{Transport: transport()},
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
	s, err := dynamosqs.New(dynamosqs.Options{Table: client, Name: "weir"})
	m.must(err)
	_, err = s.Init(ctx)
	m.must(err)
	begin := time.Now()
	n := many(callers, m.lasts, func(int) {
		_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("weir"), Item: map[string]types.AttributeValue{
			"k": &types.AttributeValueMemberS{Value: "X#" + delivery.NewID(time.Now())}, "n": &types.AttributeValueMemberN{Value: "0"}, "body": &types.AttributeValueMemberB{Value: body}}})
		m.must(err)
	})
	m.perSecond("DynamoDB's emulator: bare puts, 64 at once, a second", n, time.Since(begin))
	begin = time.Now()
	n = many(16, m.lasts, func(int) {
		r := request()
		r.Upstream = "none" // no worker sends to it
		_, _, err := s.Accept(ctx, r)
		m.must(err)
	})
	m.perSecond("DynamoDB's emulator: accepts, 16 at once, a second", n, time.Since(begin))
	m.ratio("DynamoDB's emulator: accepts to bare puts", "DynamoDB's emulator: accepts, 16 at once, a second", "DynamoDB's emulator: bare puts, 64 at once, a second")
	up := newUpstream()
	defer up.Close()
	f := m.weirs(up, s)
	defer f.stop()
	begin = time.Now()
	n = many(16, m.lasts, func(int) {
		_, _, err := f.workers[0].Accept(ctx, request())
		m.must(err)
	})
	up.until(n)
	m.perSecond("DynamoDB's emulator: end to end, a second", n, time.Since(begin))
	m.ratio("DynamoDB's emulator: end to end to bare puts", "DynamoDB's emulator: end to end, a second", "DynamoDB's emulator: bare puts, 64 at once, a second")
}
