// Package lambdax runs AWS Lambda functions under policies. It handles each SQS message of a batch separately, and answers
// requests of API Gateway with weir's error responses.
//
//	queue, err := lambdax.NewSQS(lambdax.SQSOptions{
//		Upstream: ntfy,    // the policy for each message
//		Handle:   publish, // func(context.Context, *lambdax.Message) error
//		Records:  records, // remembers handled messages
//		Letters:  letters, // receives messages that cannot be handled
//	})
//	lambda.Start(queue.Batch)
//
// The FunctionResponseTypes of the mapping between queue and function must include ReportBatchItemFailures. A function cannot
// detect whether they do. Without it, Lambda deletes all messages of a batch that returns without an error, including failed
// ones.
package lambdax
