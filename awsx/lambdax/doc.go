// Package lambdax runs AWS Lambda functions under policies: batches of SQS messages of which each is handled and
// answered for by itself, and requests of API Gateway with weir's answers to errors.
//
//	queue, err := lambdax.NewSQS(lambdax.SQSOptions{
//		Upstream: ntfy,    // the policy that each message is handled under
//		Handle:   publish, // func(context.Context, *lambdax.Message) error
//		Records:  records, // what was handled already
//		Letters:  letters, // where messages go that cannot be handled
//	})
//	lambda.Start(queue.Batch)
//
// The mapping between queue and function must have ReportBatchItemFailures among its FunctionResponseTypes. A
// function cannot see whether it has: without, Lambda deletes all messages of a batch that returns without an error,
// those that failed among them.
package lambdax
