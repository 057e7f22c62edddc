-- SPDX-License-Identifier: BSD-3-Clause
--
-- src/mem/ruby/protocol/MSI*.sm by hand, for one line, as `moscope protocol verify` models it: any order of messages, eviction at any
-- time, DRAM served at once with answers that take time. A block of data is current or stale. Each cache has at most one message in
-- each channel, which the rules assert.

const
  N: 3;

type
  Cache: scalarset(N);
  CacheState: enum { I, S, M, IS, IM, SM, MI, II };
  HomeState: enum { HI, HS, HM, BA, BO, BD, BU };
  Op: enum { NoOp, Load, Store };
  Request: enum { NoRequest, GetS, GetM, PutM };
  Forward: enum { NoForward, Inv, FwdGetS, FwdGetM };
  Response: enum { NoResponse, InvAck, OwnerData, UnblockS, UnblockM };
  Answer: enum { NoAnswer, Data, PutAck };

var
  state: array[Cache] of CacheState;
  current: array[Cache] of boolean;        -- the cache's data, or of the line that leaves
  waits: array[Cache] of Op;               -- a request set aside while the line leaves
  request: array[Cache] of Request;
  request_current: array[Cache] of boolean;
  aside: array[Cache] of boolean;          -- the home has set it aside
  forward: array[Cache] of Forward;
  response: array[Cache] of Response;
  response_current: array[Cache] of boolean;
  answer: array[Cache] of Answer;
  answer_current: array[Cache] of boolean;
  home: HomeState;
  sharer: array[Cache] of boolean;
  owner: array[Cache] of boolean;
  requestor: array[Cache] of boolean;
  acks: 0..N;
  memory_current: boolean;
  read_current: boolean;                   -- DRAM's answer to the read under way
  written: 0..7;                           -- DRAM's answers to writes under way

procedure write(c: Cache);
begin
  for o: Cache do
    current[o] := false; request_current[o] := false; response_current[o] := false; answer_current[o] := false;
  end;
  memory_current := false; read_current := false;
  current[c] := true;
end;

procedure send_request(c: Cache; r: Request; data: boolean);
begin
  assert request[c] = NoRequest;
  request[c] := r; request_current[c] := data; aside[c] := false;
end;

procedure send_response(c: Cache; r: Response; data: boolean);
begin
  assert response[c] = NoResponse;
  response[c] := r; response_current[c] := data;
end;

procedure send_answer(c: Cache; a: Answer; data: boolean);
begin
  assert answer[c] = NoAnswer;
  answer[c] := a; answer_current[c] := data;
end;

procedure begin_op(c: Cache; op: Op);
begin
  switch state[c]
    case I:
      if op = Load then state[c] := IS; send_request(c, GetS, false); else state[c] := IM; send_request(c, GetM, false); end;
    case S:
      if op = Load then assert current[c]; else state[c] := SM; send_request(c, GetM, false); end;
    case M:
      assert current[c];
      if op = Store then write(c); end;
    else
      waits[c] := op;
  end;
end;

function calm(): boolean;
begin
  if home = BD then return written < 1; end;
  return written < 2;
end;

function idle(c: Cache): boolean;
begin
  return waits[c] = NoOp & (state[c] = I | state[c] = S | state[c] = M | state[c] = MI | state[c] = II);
end;

procedure start(c: Cache);
begin
  for o: Cache do requestor[o] := false; end;
  requestor[c] := true;
  request[c] := NoRequest; request_current[c] := false; aside[c] := false;
end;

procedure read_memory();
begin
  home := BD;
  read_current := memory_current;
end;

procedure finish(next: HomeState);
begin
  home := next;
  for o: Cache do requestor[o] := false; aside[o] := false; end;
end;

ruleset c: Cache do

  rule "load" idle(c) & calm() ==> begin begin_op(c, Load); end;
  rule "store" idle(c) & calm() ==> begin begin_op(c, Store); end;

  rule "request set aside goes on" state[c] = I & waits[c] != NoOp ==>
  var op: Op;
  begin
    op := waits[c]; waits[c] := NoOp; begin_op(c, op);
  end;

  rule "evict" (state[c] = S | state[c] = M) & calm() ==>
  begin
    if state[c] = S then
      state[c] := I; current[c] := false;
    else
      state[c] := MI; send_request(c, PutM, current[c]);
    end;
  end;

  rule "answer" answer[c] != NoAnswer ==>
  begin
    if answer[c] = PutAck then
      assert state[c] = MI | state[c] = II;
      state[c] := I; current[c] := false;
    else
      current[c] := answer_current[c];
      assert current[c];
      if state[c] = IS then
        state[c] := S; send_response(c, UnblockS, false);
      else
        assert state[c] = IM | state[c] = SM;
        state[c] := M; write(c); send_response(c, UnblockM, false);
      end;
    end;
    answer[c] := NoAnswer; answer_current[c] := false;
  end;

  rule "forward" forward[c] != NoForward ==>
  begin
    if forward[c] = Inv then
      assert state[c] != M & state[c] != MI;
      if state[c] = S then state[c] := I; current[c] := false; end;
      if state[c] = SM then state[c] := IM; current[c] := false; end;
      send_response(c, InvAck, false);
    else
      assert state[c] = M | state[c] = MI;
      send_response(c, OwnerData, current[c]);
      if state[c] = MI then
        state[c] := II; current[c] := false;
      elsif forward[c] = FwdGetS then
        state[c] := S;
      else
        state[c] := I; current[c] := false;
      end;
    end;
    forward[c] := NoForward;
  end;

  rule "request" request[c] != NoRequest & !aside[c] ==>
  var others: 0..N;
  begin
    if request[c] = PutM & home = HM & owner[c] then
      memory_current := request_current[c]; written := written + 1;
      owner[c] := false; home := HI;
      request[c] := NoRequest; request_current[c] := false;
      send_answer(c, PutAck, false);
    elsif home = BA | home = BO | home = BD | home = BU then
      aside[c] := true;
    elsif request[c] = PutM then
      request[c] := NoRequest; request_current[c] := false;
      send_answer(c, PutAck, false);
    elsif home = HM then
      for o: Cache do
        if owner[o] then
          assert forward[o] = NoForward;
          forward[o] := (request[c] = GetS ? FwdGetS : FwdGetM);
        end;
      end;
      home := BO; start(c);
    elsif request[c] = GetS | home = HI then
      start(c); read_memory();
    else
      others := 0;
      for o: Cache do
        if sharer[o] & o != c then
          assert forward[o] = NoForward;
          forward[o] := Inv; others := others + 1;
        end;
      end;
      start(c);
      if others = 0 then read_memory(); else home := BA; acks := others; end;
    end;
  end;

  rule "response" response[c] != NoResponse ==>
  begin
    switch response[c]
      case InvAck:
        assert home = BA;
        acks := acks - 1;
        if acks = 0 then read_memory(); end;
      case OwnerData:
        assert home = BO;
        memory_current := response_current[c]; written := written + 1;
        for o: Cache do
          if requestor[o] then send_answer(o, Data, response_current[c]); end;
        end;
        home := BU;
      case UnblockS:
        assert home = BU;
        for o: Cache do
          if owner[o] then sharer[o] := true; owner[o] := false; end;
        end;
        sharer[c] := true;
        finish(HS);
      case UnblockM:
        assert home = BU;
        for o: Cache do sharer[o] := false; owner[o] := false; end;
        owner[c] := true;
        finish(HM);
    end;
    response[c] := NoResponse; response_current[c] := false;
  end;

end;

rule "memory has read" home = BD ==>
begin
  for o: Cache do
    if requestor[o] then send_answer(o, Data, read_current); end;
  end;
  read_current := false;
  home := BU;
end;

rule "memory has written" written > 0 ==> begin written := written - 1; end;

startstate
begin
  for c: Cache do
    state[c] := I; current[c] := false; waits[c] := NoOp;
    request[c] := NoRequest; request_current[c] := false; aside[c] := false;
    forward[c] := NoForward; response[c] := NoResponse; response_current[c] := false;
    answer[c] := NoAnswer; answer_current[c] := false;
    sharer[c] := false; owner[c] := false; requestor[c] := false;
  end;
  home := HI; acks := 0; memory_current := true; read_current := false; written := 0;
end;

invariant "one writer or readers"
  forall c: Cache do forall o: Cache do
    c = o | state[c] != M | (state[o] != S & state[o] != M)
  end end;
