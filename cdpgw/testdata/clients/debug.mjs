// What a person does with a debugger, for any client of the protocol: on calls
// its function for each event, send sends a command. It prints what it saw.
export async function debug({ send, on }) {
  const next = (event, wanted = () => true) => new Promise((resolve) => {
    on(event, (params) => wanted(params) && resolve(params));
  });
  const say = (...words) => console.log(...words);

  const order = next('Runtime.consoleAPICalled', (p) => p.args[0]?.value === 'order');
  await send('Runtime.enable');
  const { args } = await order;
  say('console', args.map((a) => a.type).join(' '));
  const properties = await send('Runtime.getProperties', { objectId: args[1].objectId, ownProperties: true });
  say('object', properties.result.filter((p) => p.name !== '__proto__').map((p) => p.name).join(' '));
  const sum = await send('Runtime.evaluate', { expression: '[40 + 2, typeof process.pid]', returnByValue: true });
  say('evaluate', sum.result.value.join(' '));
  const thrown = await send('Runtime.evaluate', { expression: 'null.x' });
  say('throws', thrown.exceptionDetails.exception.className);

  const script = next('Debugger.scriptParsed', (p) => p.url.endsWith('/shop.js'));
  await send('Debugger.enable');
  const { scriptId, url } = await script;
  const { scriptSource } = await send('Debugger.getScriptSource', { scriptId });
  say('source', scriptSource.includes('order.total * 0.19'));
  let paused = next('Debugger.paused');
  const { breakpointId, locations } = await send('Debugger.setBreakpointByUrl', { url, lineNumber: 3, condition: 'order.id > 0' });
  say('breakpoint', locations.length);
  const frame = (await paused).callFrames[0];
  say('paused', frame.functionName, frame.location.lineNumber);
  const onFrame = (expression) => send('Debugger.evaluateOnCallFrame', { callFrameId: frame.callFrameId, expression, returnByValue: true });
  say('frame', (await onFrame('order.total / order.id')).result.value);
  const scopeNumber = frame.scopeChain.findIndex((s) => s.type === 'local');
  await send('Debugger.setVariableValue', { scopeNumber, variableName: 'order', newValue: { value: 'changed' }, callFrameId: frame.callFrameId });
  say('changed', (await onFrame('order')).result.value);
  paused = next('Debugger.paused');
  await send('Debugger.stepOver');
  say('step', (await paused).callFrames[0].location.lineNumber);
  const resumed = next('Debugger.resumed');
  await send('Debugger.removeBreakpoint', { breakpointId });
  await send('Debugger.resume');
  await resumed;
  say('resumed');

  await send('Profiler.enable');
  await send('Profiler.start');
  await send('Runtime.evaluate', { expression: 'for (const end = Date.now() + 50; Date.now() < end;);' });
  const { profile } = await send('Profiler.stop');
  say('profile', profile.nodes.length > 1);
  let snapshot = '';
  on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => { snapshot += chunk; });
  await send('HeapProfiler.takeHeapSnapshot', { reportProgress: false });
  say('snapshot', JSON.parse(snapshot).snapshot.node_count > 1000);
  await send('Debugger.nothing').catch((error) => say('unknown', error.message));
}
