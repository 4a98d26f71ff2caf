// Paints lines of descent: a bar for each trial from its first step to its last, and where it left its parent's.

import type {Frame} from "../../../plot/plot";
import {type Style, seriesColor} from "../../../plot/style";
import type {Member} from "./lineage";

export const LANE_PX = 18;
const BAR_PX = 4;
const END_PX = 4;

export function laneAt(y: number): number {
  return Math.floor(y / LANE_PX);
}

export function middleOf(lane: number): number {
  return lane * LANE_PX + LANE_PX / 2;
}

export function paintDescent(context: CanvasRenderingContext2D, frame: Frame, style: Style, members: readonly Member[], best: number | null): void {
  members.forEach((member, lane) => {
    const color = seriesColor(style, member.founder);
    if (member.parentLane !== null && !member.lacks) paintBranch(context, frame, color, member, lane);
  });
  members.forEach((member, lane) => paintMember(context, frame, style, member, lane, member.id === best));
}

/** From the parent's bar down to the clone's, where it left it. */
function paintBranch(context: CanvasRenderingContext2D, frame: Frame, color: string, member: Member, lane: number): void {
  const x = frame.x(member.from);
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.setLineDash([2, 2]);
  context.beginPath();
  context.moveTo(x, middleOf(member.parentLane!));
  context.lineTo(x, middleOf(lane));
  context.stroke();
  context.setLineDash([]);
}

function paintMember(context: CanvasRenderingContext2D, frame: Frame, style: Style, member: Member, lane: number, best: boolean): void {
  const y = middleOf(lane);
  const [from, to] = [frame.x(member.from), frame.x(member.to)];
  const color = seriesColor(style, member.founder);
  context.fillStyle = color;
  const bar = best ? BAR_PX + 3 : BAR_PX;
  context.fillRect(from, y - bar / 2, Math.max(2, to - from), bar);
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  if (member.state === "pruned" || member.state === "failed") {
    context.moveTo(to - END_PX, y - END_PX);
    context.lineTo(to + END_PX, y + END_PX);
    context.moveTo(to - END_PX, y + END_PX);
    context.lineTo(to + END_PX, y - END_PX);
    context.stroke();
    return;
  }
  context.arc(to, y, END_PX, 0, 2 * Math.PI);
  if (member.state !== "complete") {
    context.fillStyle = style.panel;
    context.fill();
    context.stroke();
  } else {
    context.fill();
  }
}

export function paintLane(context: CanvasRenderingContext2D, frame: Frame, style: Style, lane: number): void {
  context.strokeStyle = style.accent;
  context.lineWidth = 2;
  context.strokeRect(1, lane * LANE_PX + 1, frame.width - 2, LANE_PX - 2);
}
