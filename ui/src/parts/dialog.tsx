// Owns dialogs: only one dialog is open at a time, it is modal, and Escape closes it. Then the focus returns
// to the element that had the focus before.
// A form sends only one request at a time. If the request is refused, the form shows the error and keeps the
// input.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Failed } from "./failure.tsx";

/** Shows a dialog as long as it is rendered. `onClose` is called on Escape or a click outside. */
export function Dialog(props: {
  title: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { title, class: name = "", onClose, children } = props;
  const box = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // A click whose press began inside is the end of a selection.
  const beganOutside = useRef(false);
  // Returns the focus in the step that removes the dialog. A later step could take it from an element to
  // which the reader has moved on.
  useLayoutEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    const around: Element[] = [];
    for (let at = before; at !== null && at !== document.body; at = at.parentElement) around.push(at);
    dialog?.showModal();
    return () => {
      dialog?.close();
      // The element may be gone, with the menu or the list in which it was.
      const place = around.find(({ isConnected }) => isConnected);
      const target = place === before ? place : place?.querySelector("button, a[href], input, textarea");
      if (target instanceof HTMLElement) target.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the dialog itself handles Escape
    <dialog
      ref={box}
      class={`dialog ${name}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => {
        beganOutside.current = event.target === box.current;
      }}
      onClick={(event) => event.target === box.current && beganOutside.current && onClose()}
    >
      <div class="dialog-body">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** A button that opens a dialog, which it draws. */
export function DialogButton(
  props: Parameters<typeof Button>[0] & { dialog: (onClose: () => void) => ComponentChildren },
) {
  const { dialog, ...button } = props;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...button} onClick={() => setOpen(true)} />
      {isOpen && dialog(() => setOpen(false))}
    </>
  );
}

function Actions(props: { problem?: unknown; onClose: () => void; children: ComponentChildren }) {
  const { problem, onClose, children } = props;
  return (
    <div class="actions">
      {problem !== undefined && <Failed problem={problem} />}
      <Button text="Cancel" onClick={onClose} />
      {children}
    </div>
  );
}

/** Shows the form in a dialog. `onSubmit` sends it, and closes the dialog if that succeeds. */
export function Form(props: {
  class?: string;
  children: ComponentChildren;
  /** Label of the submit button. */
  action: string;
  disabled?: boolean;
  onSubmit: () => Promise<void>;
  onClose: () => void;
}) {
  const { class: name, children, action, disabled, onSubmit, onClose } = props;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    onSubmit()
      .catch(setProblem)
      .finally(() => setBusy(false));
  };
  return (
    <form class={name} onSubmit={submit} onInput={() => setProblem(undefined)}>
      {children}
      <Actions problem={problem} onClose={onClose}>
        <button type="submit" class="primary" disabled={busy || disabled}>
          {action}
        </button>
      </Actions>
    </form>
  );
}

export function Confirm(props: {
  title: string;
  children: ComponentChildren;
  /** Label of the submit button. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  const { title, children, action, onConfirm, onClose } = props;
  const confirm = (): void => {
    onClose();
    onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Actions onClose={onClose}>
        <Button text={action} class="danger" onClick={confirm} />
      </Actions>
    </Dialog>
  );
}
